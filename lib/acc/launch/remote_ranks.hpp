// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <boost/asio/io_context.hpp>
#include <boost/asio/steady_timer.hpp>
#include <chrono>
#include <functional>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "acc/control/node_view.hpp"
#include "acc/launch/reporter.hpp"
#include "acc/rendezvous/rank_report.hpp"

namespace acc::launcher {

/// The other nodes, and the ranks of this one.
struct RemoteRanksParts {
  /// As Rendezvous's.
  std::function<std::string()> want = {};
  std::function<void(const std::string& ranks)> report = {};
  /// Passes on the text of RankReport, at once or later; empty: it could not be made.
  std::function<void(std::function<void(std::string ranks)> done)> measure = {};
  /// The name of this machine.
  std::string host = "localhost";
};

struct RemoteRanksTimes {
  /// For nodes that are to report.
  std::chrono::milliseconds wait = std::chrono::seconds(1);
  /// Between two reports of this node, and between two requests: where there are many nodes, so much for
  /// each.
  std::chrono::milliseconds pause = std::chrono::milliseconds(500);
  std::chrono::milliseconds pause_of_node = std::chrono::milliseconds(5);
  /// Reports that are older when somebody looks again are forgotten.
  std::chrono::milliseconds memory = std::chrono::seconds(30);
};

/// The ranks of a job's other nodes for those who look at the job on this machine, and those of this node for
/// the others. Nothing is measured or sent while nobody looks. Keeps the newest report of each node alone, of
/// this attempt.
class RemoteRanks : public Reporter {
 public:
  using Answer = std::function<void(const nlohmann::json&)>;

  RemoteRanks(boost::asio::io_context& loop, RemoteRanksParts parts, RemoteRanksTimes times = {});

  void report(const Event& event) override;

  /// Somebody looks: passes on to_json(NodeReports), when all nodes have reported anew that did so the last
  /// time, and at the end of the wait in any case.
  void ask(Answer answer);

  /// As in RankHandlers.
  void on_wanted();
  void on_peers(const std::vector<PeerNode>& peers);
  void on_report(const RankReport& report);

 private:
  using Clock = std::chrono::steady_clock;
  struct Node {
    PeerNode peer = {};
    std::string ranks = {};
    std::optional<Clock::time_point> reported = {};
    /// Its report is being waited for.
    bool is_awaited = false;
    /// It has not answered in time when it was last asked.
    bool is_late = false;
    /// When it was last asked it could not say; what it said before stays.
    bool has_failed = false;
  };

  bool may_ask_again() const;
  void finish_when_complete();
  void finish();
  void end_wait();
  void measure();
  NodeReports reports() const;

  RemoteRanksParts parts_;
  RemoteRanksTimes times_;
  std::vector<Answer> answers_ = {};
  /// By node rank.
  std::map<int, Node> nodes_ = {};
  std::string reason_ = {};
  /// Of this node.
  int node_rank_ = 0;
  /// The other nodes are asked, and the coordinator has said which they are.
  bool is_asking_ = false;
  bool is_listed_ = false;
  std::optional<Clock::time_point> asked_ = {};
  boost::asio::steady_timer wait_;
  /// This node is to report.
  bool is_wanted_ = false;
  std::optional<Clock::time_point> measured_ = {};
  boost::asio::steady_timer pause_;
};

/// The text of RankReport. Takes a while, and a driver may block: for a child of the agent.
std::string measured_ranks(const std::function<JobView()>& view);

}  // namespace acc::launcher
