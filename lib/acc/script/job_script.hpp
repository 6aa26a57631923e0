// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "acc/base/environment.hpp"
#include "acc/config/read.hpp"
#include "acc/plan/launch_inputs.hpp"

namespace acc::launcher {

/// The words of `--print-script`.
enum class ScriptKind { slurm, k8s, jobset, pbs };

/// What a script tells of a job.
struct ScriptJob {
  ScriptKind kind = ScriptKind::slurm;
  /// Of the program; a DNS label of at most 40 characters that begins with a letter.
  std::string name = {};
  /// The command as typed, from `acc` on.
  std::vector<std::string> typed = {};
  /// The command of each node, from `acc` on: as typed, without what the engine tells acc there.
  std::vector<std::string> words = {};
  /// Variables of acc and torchrun that have an effect on the job.
  Environment environment = {};
  /// The number of nodes, and with how many of them the job goes on.
  int nodes = 1;
  int min_nodes = 1;
  int workers_per_node = 1;
  int gpus_per_node = 0;
  /// The job does not train on GPUs, but nothing says that it must not: this machine has none.
  bool may_use_gpus = false;
  int cpus_per_node = 1;
  /// The job asks for another start when it is preempted (`--requeue-on-preemption`).
  bool requeues_on_preemption = false;
  /// Time that acc takes to end the job, with a margin: what kills it must wait so long.
  int grace_seconds = 0;
  /// Of jobs that do not see the files of this machine.
  std::optional<ConfigText> config = {};
};

/// The job of the command line in `inputs`, as `kind` starts it. `acc` is the word or path that calls acc on
/// the nodes. The command is resolved as on a node of the job, so that what prevents its start is noticed
/// here. `config` is the config file of `inputs`, if it has one. Throws Error{usage}, also if the command
/// cannot run on nodes that are not known yet (`--machine_rank`, `--hosts`, ...), or if an engine started
/// this process.
ScriptJob plan_script(const LaunchInputs& inputs, const std::string& acc, std::optional<ConfigText> config);

/// The script or manifest. Throws Error{usage} if a text cannot be written in it.
std::string job_script(const ScriptJob& job);

/// Remarks for whoever prints the script, one line each.
std::vector<std::string> script_notes(const ScriptJob& job, const Environment& environment);

}  // namespace acc::launcher
