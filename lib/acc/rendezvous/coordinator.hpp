// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "acc/plan/rendezvous_plan.hpp"
#include "acc/rendezvous/absent_nodes.hpp"
#include "acc/rendezvous/hang_agreement.hpp"
#include "acc/rendezvous/node_connection.hpp"
#include "acc/rendezvous/node_message.hpp"
#include "acc/rendezvous/rendezvous_backend.hpp"
#include "acc/store/dialer.hpp"

namespace acc::launcher {

/// Leads a job. It knows all nodes of `acc`, adds them to the backend, begins a round when all are ready,
/// ends it for all when one fails or is lost, and begins another. It has no clock and no socket: nodes are
/// numbers, events go in, messages come out. Only what concerns all nodes, such as the begin of a round,
/// looks at all of them, so that its work grows linearly with their number.
class Coordinator {
 public:
  using NodeId = int;
  using Send = std::function<void(NodeId, const NodeMessage&)>;

  struct Options {
    RendezvousPlan plan = {};
    int max_restarts = 0;
    /// As in LaunchPlan.
    int restarts_without_progress = 0;
    /// Rounds and restarts so far, if this coordinator replaces one that was lost.
    int rounds = 0;
    int restarts = 0;
    Stall stall = {};
    /// Nodes of the last round that may be alive and have yet to connect to this coordinator.
    std::vector<NodeInfo> absent_nodes = {};
    /// Of those, how many are expected at any moment: no round begins without them until stop_expecting().
    int survivors = 0;
    /// This coordinator has led that round itself.
    bool has_led = false;
    /// Port at which nodes connect to this coordinator, and those of nodes that are known to have ended.
    int port = 0;
    std::vector<int> dead_ports = {};
    /// Called when no node has a worker of the last round any more, before the next one is formed.
    std::function<void()> before_round = [] {};
  };

  /// `backend` and what `send` needs outlive it.
  Coordinator(RendezvousBackend& backend, Send send, Options options);

  /// The handlers that the backend is to be given.
  RendezvousBackend::Events backend_events();

  void on_hello(NodeId node, const NodeInfo& info, const NodeHistory& history = {});
  void on_message(NodeId node, const NodeMessage& message);
  /// `has_ended`: its process is known to have ended; otherwise it is only silent.
  void on_lost(NodeId node, const std::string& reason, bool has_ended);

  /// The process of the node that listened at `address` has ended: it is not absent any more.
  void on_ended(const StoreAddress& address);

  /// Survivors that have not come are lost, too.
  void stop_expecting();

  /// Ends the job for a reason that is not a worker's failure, such as a timeout.
  void give_up(const std::string& reason);

  /// A node is silent, or is heard again: node 0 reports it to the user.
  void on_silence(NodeId node, const Silence& silence);
  /// Whether the job goes on when a node is lost.
  bool survives_loss() const;
  /// The message to the others when node 0 leaves; absent if they can go on.
  std::optional<RoundOver> end_without_host(const Leave& leave) const;
  /// The last message to a node that was silent for too long.
  NodeMessage last_message(const std::string& reason) const;
  /// How long a node may be silent now.
  std::chrono::milliseconds node_timeout() const;

  bool is_over() const { return phase_ == Phase::over; }
  /// Too many nodes of the last round are absent, and may go on elsewhere: no round begins until they are
  /// back.
  bool is_smaller_part() const;
  /// And they are enough for a round of their own.
  bool may_be_led_elsewhere() const;
  /// As many nodes of the last round are here, or have done their work, as a round needs.
  bool has_enough_nodes() const {
    return count(&Node::member) + static_cast<int>(succeeded_nodes_.size()) >= options_.plan.min_nodes;
  }
  const AbsentNodes& absent_nodes() const { return absent_nodes_; }
  /// Which nodes are here and which are missing, for the user.
  std::string missing() const;
  std::size_t nodes() const { return nodes_.size(); }
  /// All nodes that the job can have are in the last round, and none of them was lost since.
  bool is_full() const { return full_; }
  /// Whether a node of the job is connected from `address`, or was until its workers had succeeded.
  bool is_address_of_node(const std::string& address) const;
  /// Another connection of the node, which on_hello() takes for lost.
  std::optional<NodeId> earlier_connection(const NodeInfo& info) const;
  /// The node that holds the rank of `info` in a static job, or the next after `proven` in a job that has no
  /// room for `info`, if it may be an earlier process of the same machine that has ended:
  /// whoever asks waits until that one is heard or lost.
  std::optional<NodeId> unproven_holder(const NodeInfo& info, NodeId proven = 0) const;
  /// Why a node that comes to a full job must end; absent if it may wait for a place.
  std::optional<RoundOver> surplus() const;
  /// Addresses that connections of the round's nodes can come from; empty if they are not known of all nodes:
  /// some are another launcher's, or behind a NAT.
  std::vector<std::string> addresses_of_round() const { return addresses_; }

 private:
  enum class Phase { gathering, running, ending, over };
  struct Node {
    NodeInfo info = {};
    NodeHistory history = {};
    bool ready = false;  // it has no worker, and has asked for the next round
    bool in_backend = false;
    bool member = false;    // of the last round
    bool entered = false;   // and has said so
    bool in_round = false;  // it may have workers of it still
    bool done = false;      // and they have succeeded
    bool spare = false;     // it waits for a place while a round runs
    bool silent = false;    // for longer than is reported
    int machine_rank = 0;   // in the last round
    int first_rank = 0;     // likewise
    /// Nodes that wait for its next RankReport.
    std::set<NodeId> viewers = {};
  };

  using Rounds = RendezvousBackend::Rounds;

  void on_join(NodeId id, const Join& request);
  void on_worker_failed(NodeId id, const WorkerFailed& message);
  void on_round_entered(NodeId id, const RoundEntered& message);
  void on_workers_done(NodeId id, const WorkersDone& message);
  void on_leave(NodeId id, const Leave& message);
  /// Whether what the node says concerns all nodes of the job.
  bool speaks_for_job(NodeId id) const;
  void on_stop_job(NodeId id, const StopJob& request);
  void on_end_notice(NodeId id, const EndNotice& notice);
  void on_progress(NodeId id, NodeProgress progress);
  void on_slow_ranks(NodeId id, const SlowRanks& slow);
  /// Whether the node has ranks in this round, which goes on.
  bool reports_in(NodeId id, int round) const;
  void on_ranks_wanted(NodeId id);
  void on_rank_report(NodeId id, RankReport report);
  Peers peers_of(NodeId id) const;
  void watch_for_hangs(const Rounds& rounds);
  void tell_of_hang(const std::optional<JobHang>& hang);
  void on_round(Rounds rounds);
  void on_missing(const std::string& text, bool spare);
  void group_changed(const std::string& text, int code = exit_code(ErrorKind::rendezvous));
  void isolate(const std::string& text);
  void come_back(NodeId id);
  void count_again();
  void remember_success(Node& node);
  void forget(NodeId id);
  void end_round(const RoundOver& verdict);
  void end_job(const RoundOver& verdict);
  void meet_when_all_ready();
  void finish_when_all_done();
  void lose(NodeId id, const std::string& text, bool has_ended, int code = exit_code(ErrorKind::rendezvous));
  int count(bool Node::* mark) const;
  bool is_crowded() const;
  bool may_stay_spare() const;
  std::vector<NodeInfo> find_successors(const Rounds& rounds) const;
  void wait_as_spare(NodeId id, const std::string& text);
  void find_addresses(const Rounds& rounds);
  std::vector<std::string> addresses_of_nodes() const;
  void send_to_all(const NodeMessage& message);

  RendezvousBackend& backend_;
  Send send_;
  Options options_;
  Phase phase_ = Phase::gathering;
  std::map<NodeId, Node> nodes_ = {};
  /// The same by the address they are seen at, and by rank in a static job.
  std::set<std::pair<std::string, NodeId>> by_address_ = {};
  std::map<int, NodeId> by_rank_ = {};
  /// Those that are not ready, those in the round that are not done, and those that the backend is to be
  /// told.
  std::set<NodeId> not_ready_ = {};
  std::set<NodeId> not_done_ = {};
  std::set<NodeId> pending_ = {};
  int rounds_ = 0;
  int restarts_ = 0;
  StallCount stall_;
  HangAgreement hang_ = {};
  bool finishing_ = false;
  /// All workers of the last round have succeeded, and all nodes that are here were told.
  bool succeeded_ = false;
  bool full_ = false;
  std::vector<std::string> addresses_ = {};
  AbsentNodes absent_nodes_;
  /// Nodes that were lost after their workers had succeeded in the round that runs.
  std::vector<NodeInfo> succeeded_nodes_ = {};
  /// Likewise, as the backend has them until that round is over.
  std::vector<OwnNode> departed_ = {};
  /// Nodes that outlived the last coordinator and have yet to come.
  int survivors_ = 0;
  /// The latest round that any node was in that has connected, under another coordinator.
  int latest_round_ = 0;
  std::vector<NodeInfo> successors_ = {};
  std::string backend_missing_ = {};
};

}  // namespace acc::launcher
