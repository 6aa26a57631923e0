// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <set>

#include "acc/rendezvous/node_hang.hpp"

namespace acc::launcher {

/// Decides for the node that leads a job whether the job hangs: all its nodes are idle at the same time. Only
/// the nodes know for how long they have been idle, so that no clocks are compared. A message may be late:
/// when all have said that they are idle, each is asked once more, and one that does not answer counts as
/// active until it does, or is lost. The workers of no node are stopped before all nodes have examined
/// theirs.
class HangAgreement {
 public:
  /// A round begins. `nodes` say when they are idle; `is_whole`: there are no others.
  void begin(std::set<int> nodes, bool is_whole);
  /// What all nodes() are to be told now; its round is for the caller to fill in.
  std::optional<JobHang> on_message(int node, const NodeHang& message);
  /// The workers of the node have succeeded.
  std::optional<JobHang> on_success(int node);
  /// Those whose workers run.
  const std::set<int>& nodes() const { return nodes_; }

 private:
  enum class Phase { watching, asking, examining, reported };

  void on_active(int node);
  void on_answer(int node, int number, Phase phase);
  std::optional<JobHang> next_step();
  JobHang enter(Phase phase, JobHangStage stage);

  std::set<int> nodes_ = {};
  bool is_whole_ = true;
  Phase phase_ = Phase::watching;
  int number_ = 0;
  std::set<int> idle_ = {};
  /// What this phase waits for.
  std::set<int> answered_ = {};
};

}  // namespace acc::launcher
