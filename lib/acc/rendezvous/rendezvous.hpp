// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "acc/plan/rendezvous_plan.hpp"
#include "acc/rendezvous/node_hang.hpp"
#include "acc/rendezvous/rank_progress.hpp"
#include "acc/rendezvous/rank_report.hpp"
#include "acc/rendezvous/stall.hpp"

namespace acc::launcher {

/// All nodes are there: workers may start. The store of the round is empty.
struct RoundReady {
  Round round = {};
  /// How often the job was started again because of a failure, on any node.
  int restarts = 0;

  bool operator==(const RoundReady&) const = default;
};
/// The round has ended before its workers did, on this node or another: they are to be stopped.
struct RoundOver {
  /// The nodes meet again; otherwise the job is over.
  bool restart = false;
  /// What happened, for the user; empty if `failure` says it.
  std::string text = {};
  /// The worker that failed, on whichever node, as its agent described it (JSON); empty: none did.
  std::string failure = {};
  /// Of the job, when it is over.
  int exit_code = 0;
  /// How far the workers of the node got that says that one failed, or that they hang.
  StepsReached reached = {};
  /// Why the workers are not started again as that node would have done; empty: they are, or it would not.
  std::string reason = {};

  bool operator==(const RoundOver&) const = default;
};
/// The end of a round as the count decides it: not again after too many restarts without progress.
inline RoundOver decide(RoundOver failure, StallCount& count) {
  if (failure.restart) failure.reason = count.on_failure(failure.reached);
  failure.restart = failure.restart && failure.reason.empty();
  return failure;
}
/// Every worker of every node has succeeded.
struct JobDone {};
/// A message for the user while nodes wait for each other.
struct Notice {
  std::string text = {};
};
/// Another node got a signal that announces the end of the job.
struct EndNotice {
  int signal = 0;
  /// That node.
  std::string host = {};

  bool operator==(const EndNotice&) const = default;
};
/// After leave(): nobody needs this node any more.
struct Left {};
using NodeEvent = std::variant<RoundReady, RoundOver, JobDone, Notice, EndNotice, Left>;

/// Handlers of what nodes say of their ranks while a round runs.
struct RankHandlers {
  /// On the node that leads the job: how far the ranks of another one are.
  std::function<void(const NodeProgress&)> progress = [](const NodeProgress&) {};
  /// On the others: all ranks of the job that are slow now.
  std::function<void(const std::vector<SlowRank>&)> slow_ranks = [](const std::vector<SlowRank>&) {};
  /// Another node wants the ranks of this one: report_ranks() is due, once.
  std::function<void()> ranks_wanted = [] {};
  /// After want_ranks(): the other nodes of the round that run acc, and then what each of them reports.
  std::function<void(const std::vector<PeerNode>&)> peers = [](const std::vector<PeerNode>&) {};
  std::function<void(const RankReport&)> report = [](const RankReport&) {};
  /// After tell_hang(): what is known of the ranks of all nodes.
  std::function<void(const JobHang&)> hang = [](const JobHang&) {};
};

/// How the nodes of a job find each other and stay together. It answers by events, during the call or later
/// from the event loop.
class Rendezvous {
 public:
  using Sink = std::function<void(NodeEvent)>;

  Rendezvous() = default;
  virtual ~Rendezvous() = default;
  Rendezvous(const Rendezvous&) = delete;
  Rendezvous& operator=(const Rendezvous&) = delete;

  /// Sets the handler of events; must be called first.
  void on_event(Sink sink) { sink_ = std::move(sink); }
  void on_ranks(RankHandlers handlers) { ranks_ = std::move(handlers); }

  /// This node has no worker and wants a round: RoundReady follows, or RoundOver when that cannot be. Throws
  /// Error when this machine cannot take part.
  virtual void join() = 0;
  /// A worker of this node failed by itself. `failure.restart`: its agent would start the workers once more.
  /// RoundOver follows with what all nodes do.
  virtual void fail(const RoundOver& failure) = 0;
  /// All workers of this node have succeeded: JobDone follows, or RoundOver when another node's did not.
  virtual void finish() = 0;
  /// This node got a signal that announces the end of the job: EndNotice follows on the others that run acc.
  virtual void announce_end(int /*signal*/) {}
  /// The user wants the job to end: RoundOver follows on all nodes, unless stops_alone() says why not. `code`
  /// is the job's exit code.
  virtual void stop_job(int /*code*/) {}
  /// Why stop_job() does not reach the other nodes, for the user; empty: it does, or there are none.
  virtual std::string stops_alone() const { return {}; }
  /// How far the ranks of this node are, for the node that leads the job. Returns false if no other node
  /// takes it: this one leads, or that one runs an older acc.
  virtual bool tell_progress(const std::vector<RankProgress>& /*ranks*/) { return false; }
  /// On the node that leads: which ranks of the job are slow now, for the others that run acc.
  virtual void tell_slow(const std::vector<SlowRank>& /*ranks*/) {}
  /// Asks the other nodes for their ranks. Returns why that cannot be, for the user; empty: they are asked.
  virtual std::string want_ranks() { return "the job has one node"; }
  /// The answer to RankHandlers::ranks_wanted; `ranks` as in RankReport.
  virtual void report_ranks(const std::string& /*ranks*/) {}
  /// What this node says of its ranks, for the node that leads the job; the round is filled in. Returns why
  /// nobody knows of the ranks of all nodes, for the user; empty: RankHandlers::hang follows.
  virtual std::string tell_hang(const NodeHang& /*hang*/) { return "the nodes do not know each other"; }
  /// This node leaves, for `reason`; only Left follows. `code` is the job's exit code, if it cannot go
  /// on without this node.
  virtual void leave(const std::string& reason, int code) = 0;

  /// The state of this node, for the user; empty in a job of one machine.
  virtual std::string state() const { return {}; }

 protected:
  void emit(NodeEvent event) const { sink_(std::move(event)); }
  const RankHandlers& ranks() const { return ranks_; }

 private:
  Sink sink_ = [](const NodeEvent&) {};
  RankHandlers ranks_ = {};
};

}  // namespace acc::launcher
