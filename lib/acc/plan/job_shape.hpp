// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "acc/base/error.hpp"
#include "acc/plan/launch_inputs.hpp"
#include "acc/plan/settings.hpp"

namespace acc::launcher {

/// How many workers, on how many machines, of which kind.
struct JobShape {
  /// accelerate's launcher of that kind of job: simple, elastic, deepspeed, tpu, tpu-pod, sagemaker; or
  /// torchrun.
  std::string launcher = "simple";
  std::string distributed_type = "NO";
  int num_machines = 1;
  /// The job starts with so few already (`--nnodes MIN:MAX`).
  int least_machines = 1;
  int machine_rank = 0;
  int nproc_per_node = 1;
  bool use_cpu = false;
  bool sets_ranks = true;
  /// Another launcher starts the workers (mpirun, deepspeed, torch_xla); acc runs it as one process.
  bool delegated = false;
  std::vector<std::string> notes = {};
  std::vector<Problem> problems = {};
};

/// Decides the shape and writes the values that it derived, with their origins, into `settings`.
/// Throws Error when two givers contradict each other, naming both.
JobShape decide_shape(const LaunchInputs& inputs, Settings& settings);

}  // namespace acc::launcher
