// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <filesystem>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "acc/base/environment.hpp"
#include "acc/base/machine.hpp"
#include "acc/base/own_addresses.hpp"
#include "acc/base/topology.hpp"
#include "acc/plan/command_line.hpp"
#include "acc/plan/program.hpp"
#include "acc/plan/setting.hpp"

namespace acc::launcher {

/// The topology of the CPUs that acc may use and of a machine's GPUs, from the kernel.
Topology topology_of(const Machine& machine);

/// Everything that `resolve` looks at, gathered by the command beforehand.
struct LaunchInputs {
  Dialect dialect = Dialect::launch;
  CommandLine command_line = {};
  Environment environment = {};
  /// What the config file says, by setting name; each origin is `file:line`. Empty: there is no file.
  std::map<std::string, Setting, std::less<>> file = {};
  /// The names of these settings in the order of the file.
  std::vector<std::string> file_order = {};
  /// The current folder.
  std::filesystem::path folder = {};
  /// TMPDIR, where it names a folder.
  std::optional<std::filesystem::path> temporary_folder = {};
  /// The path by which acc was called.
  std::filesystem::path called_as = {};
  /// The mpirun on PATH is Open MPI's; asked for only where a job goes through mpirun.
  bool open_mpi = true;
  Machine machine = {};
  /// Run id of a `--standalone` job.
  std::string random_id = "standalone";
  /// How programs and interpreters are found.
  FileKindOf file_kind = kind_of_file;
  /// Asked only where workers are bound to CPUs: it costs a few files per CPU.
  std::function<Topology(const Machine&)> topology = topology_of;
  /// Asked only for a job of one machine whose address was named: a name server may take its time.
  std::function<HostLookup(const std::string&)> look_up = acc::look_up;
  std::function<OwnNames()> own_names = acc::own_names;
};

}  // namespace acc::launcher
