// SPDX-License-Identifier: Apache-2.0
#pragma once

namespace acc::launcher {

/// What a node says of its ranks to the node that leads the job, while its job watches for hangs. The numbers
/// are those of the messages.
enum class NodeHangStage {
  active = 0,     ///< after `idle`: a rank has done something since
  idle = 1,       ///< all of them have been idle for the timeout
  confirmed = 2,  ///< the answer to JobHangStage::suspected: they have been since, for the timeout again
  examined = 3,   ///< the answer to JobHangStage::found: their state has been reported
};

struct NodeHang {
  int round = 0;
  NodeHangStage stage = NodeHangStage::active;
  /// Of an answer: as in JobHang.
  int number = 0;

  bool operator==(const NodeHang&) const = default;
};

/// What the node that leads the job says to all whose workers run.
enum class JobHangStage {
  suspected = 0,  ///< all nodes have said that they are idle: each is to say whether it still is
  found = 1,      ///< all of them are: each is to report the state of its ranks
  examined = 2,   ///< all of them have: workers may be stopped
  unknown = 3,    ///< all nodes are idle that say so, and others of the round cannot say it
};

struct JobHang {
  int round = 0;
  JobHangStage stage = JobHangStage::suspected;
  /// Counts the suspicions of a round.
  int number = 0;

  bool operator==(const JobHang&) const = default;
};

}  // namespace acc::launcher
