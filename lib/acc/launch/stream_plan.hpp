// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "acc/plan/launch_plan.hpp"

namespace acc::launcher {

/// Where one stream of one worker goes.
struct StreamPlan {
  /// Into `<folder>/stdout.log` or `stderr.log`.
  bool file = false;
  /// To acc's own stream.
  bool console = false;
  /// On the console each line has its prefix (`--tee`); else bytes pass as they are.
  bool prefixed = false;
  /// On the console each line has its time (`--log-timestamps`).
  bool stamped = false;

  bool operator==(const StreamPlan&) const = default;
};

/// Which worker: its number on this node, and over all nodes.
struct WorkerNumbers {
  int local_rank = 0;
  int rank = 0;
};

/// torchrun 2.11's rules: `--tee` implies the file; a rank outside `--local-ranks-filter` stays away from the
/// console, and so does one outside `--ranks-filter`. `has_folder`: files can be kept at all.
StreamPlan plan_stream(const OutputPlan& output, WorkerNumbers worker, Streams stream, bool has_folder);

}  // namespace acc::launcher
