// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "acc/base/error.hpp"
#include "acc/plan/launch_inputs.hpp"
#include "acc/plan/launcher.hpp"
#include "acc/plan/settings.hpp"

namespace acc::launcher {

/// A number of machines, or a range of them (`--nnodes MIN:MAX`).
struct MachineRange {
  int min = 1;
  int max = 1;
};

/// The number of machines that the settings give. Throws Error{usage}.
MachineRange decide_machines(const Settings& settings);

/// The number of workers and machines, and the kind of the job.
struct JobShape {
  Launcher launcher = Launcher::simple;
  DistributedType distributed_type = DistributedType::no;
  int num_machines = 1;
  /// The job may start with this many machines (`--nnodes MIN:MAX`).
  int min_machines = 1;
  int machine_rank = 0;
  int nproc_per_node = 1;
  /// The number of copies of acc, with as many workers each, that share the cores of this machine.
  int copies_on_machine = 1;
  bool use_cpu = false;
  bool sets_ranks = true;
  /// Another launcher (mpirun, deepspeed, torch_xla) starts the workers; acc runs it as a single process.
  bool delegated = false;
  std::vector<std::string> notes = {};
  std::vector<Problem> problems = {};
};

/// Determines the shape and stores derived values, with their origins, in `settings`. `max_gpus`: so many of
/// the visible GPUs are this job's. Throws Error if two
/// settings contradict each other, naming both.
JobShape decide_shape(const LaunchInputs& inputs, Settings& settings, std::optional<int> max_gpus = {});

}  // namespace acc::launcher
