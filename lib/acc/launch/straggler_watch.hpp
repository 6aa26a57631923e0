// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <boost/asio/io_context.hpp>
#include <boost/asio/steady_timer.hpp>
#include <chrono>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "acc/base/progress_page.hpp"
#include "acc/control/job_view.hpp"
#include "acc/launch/processes.hpp"
#include "acc/launch/reporter.hpp"
#include "acc/launch/step_comparison.hpp"
#include "acc/rendezvous/rank_progress.hpp"

namespace acc::launcher {

/// The job to watch, the other nodes, and the receiver of events.
struct StragglerWatchParts {
  std::function<const JobView&()> job = {};
  /// What the worker says of itself.
  std::function<std::optional<Progress>(int local_rank)> progress = {};
  std::function<void(AgentEvent)> send = {};
  /// As Rendezvous's.
  std::function<bool(const std::vector<RankProgress>&)> tell_progress = [](const auto&) { return false; };
  std::function<void(const std::vector<SlowRank>&)> tell_slow = [](const auto&) {};
  /// The name of this machine.
  std::string host = "localhost";
};

/// Compares on the event loop the ranks that say how far they are, and sends Straggler for each that has
/// become slow. Reads the pages of this node once in `period`; while none of them says anything, more and
/// more seldom. Starts with the last worker of an attempt, and ends when the job is asked to end. While the
/// node is suspended its ranks are not compared, and after that anew.
///
/// In a job of several nodes the one that leads compares the ranks of all, and tells the others which are
/// slow. They read their pages for it so much more seldom, where there are many, that it gets 20 messages in
/// `period` at most. A node whose coordinator runs an older acc, or another launcher, compares its own.
class StragglerWatch : public Reporter {
 public:
  /// A job of one worker is never watched.
  StragglerWatch(boost::asio::io_context& loop, int workers, StragglerWatchParts parts,
                 std::chrono::milliseconds period = std::chrono::seconds(1));

  void report(const Event& event) override;

  /// Another node says how far its ranks are; this one leads the job.
  void on_progress(const NodeProgress& node) { nodes_[node.node] = {.progress = node}; }
  /// The node that leads says which ranks are slow now.
  void on_slow(const std::vector<SlowRank>& ranks) { slow_ = ranks; }

  /// Says in the view of each rank in which section it is slow.
  void mark(JobView& job) const;

 private:
  /// Another node: what it has said last, and how often this one has looked since.
  struct Node {
    NodeProgress progress = {};
    int looks = 0;
  };

  void begin(const Round& round);
  void on_suspended();
  void wait();
  void look();
  void compare(const std::vector<RankProgress>& local_ranks);
  std::vector<RankProgress> read_pages() const;
  std::vector<std::optional<Progress>> all_pages(const std::vector<RankProgress>& local_ranks) const;
  std::string host_of(int rank) const;

  int workers_;
  StragglerWatchParts parts_;
  std::chrono::milliseconds period_;
  std::chrono::milliseconds pause_ = {};
  bool watching_ = false;
  // Of the attempt:
  Round round_ = {};
  std::shared_ptr<StepComparison> comparison_ = std::make_shared<StepComparison>();
  /// Any rank here has said something.
  bool is_followed_ = false;
  std::map<int, Node> nodes_ = {};
  std::vector<SlowRank> slow_ = {};
  boost::asio::steady_timer timer_;
};

}  // namespace acc::launcher
