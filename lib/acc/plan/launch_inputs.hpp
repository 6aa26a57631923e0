// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <filesystem>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "acc/base/engine.hpp"
#include "acc/base/environment.hpp"
#include "acc/base/machine.hpp"
#include "acc/base/own_addresses.hpp"
#include "acc/base/task_exchange.hpp"
#include "acc/base/topology.hpp"
#include "acc/plan/command_line.hpp"
#include "acc/plan/program.hpp"
#include "acc/plan/settings.hpp"

namespace acc::launcher {

/// The topology of the CPUs that acc may use and of a machine's GPUs, from the kernel.
Topology topology_of(const Machine& machine);

/// What this node was given by the acc that started the job on several hosts (`--hosts`).
struct HostAllocation {
  Engine engine = {};
  /// The workers of this host, and of all; absent: not given (for each host).
  std::optional<EngineValue<int>> slots = {};
  std::optional<EngineValue<int>> all_slots = {};
};

/// Everything that `resolve` depends on, gathered by the command.
struct LaunchInputs {
  Dialect dialect = Dialect::launch;
  CommandLine command_line = {};
  Environment environment = {};
  /// The settings of the config file; each origin is `file:line`. Empty if there is no file.
  SettingMap file = {};
  /// The file is the default one, not one that the user named.
  bool file_is_default = false;
  /// These settings in the order of the file.
  std::vector<SettingId> file_order = {};
  /// Absent: acc was not started by --hosts or --hostfile.
  std::optional<HostAllocation> host = {};
  /// The current folder.
  std::filesystem::path folder = {};
  /// TMPDIR if it names a folder.
  std::optional<std::filesystem::path> temporary_folder = {};
  Caller caller = {};
  /// As under accelerate, a number of processes below 1 is one process, where the type of job starts one.
  bool none_is_one = false;
  /// ProgramRequest::is_python_script.
  std::function<bool(const std::filesystem::path&)> is_python_script = {};
  /// Whether the mpirun on PATH is that of Open MPI; determined only for jobs that use mpirun.
  bool open_mpi = true;
  Machine machine = {};
  /// Called only for workers that share the cores: it reads a file per CPU.
  std::function<int()> allowed_cores = acc::allowed_cores;
  /// Those of SIGUSR1 and SIGUSR2 that acc was started to ignore.
  std::set<int> ignored_signals = {};
  /// The run id of a `--standalone` job.
  std::string random_id = "standalone";
  /// Looks up the kind of a file, to find programs and interpreters.
  FileKindOf file_kind = kind_of_file;
  /// Called only if workers are bound to CPUs: it reads a few files per CPU.
  std::function<Topology(const Machine&)> topology = topology_of;
  /// Called only for a job on one machine with an address: a DNS lookup may be slow.
  std::function<HostLookup(const std::string&)> look_up = acc::look_up;
  std::function<OwnNames()> own_names = acc::own_names;
  /// Called only for tasks of MPI, all of which wait in it for each other.
  std::function<std::optional<FirstTask>(const Environment&, int, const std::string&)> exchange =
      exchange_first_task;
  /// Called only for a task of MPI that looks alone on its node and would start several workers there, when
  /// the tasks need no exchange.
  std::function<std::optional<int>(const Environment&)> count_task_nodes = acc::count_task_nodes;
  /// Called only for a pod of an Indexed Job: the name of this host with its domain.
  std::function<std::string()> full_host_name = acc::full_host_name;
};

}  // namespace acc::launcher
