// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <map>
#include <string>

#include "acc/base/environment.hpp"
#include "acc/base/machine.hpp"
#include "acc/base/topology.hpp"
#include "acc/plan/command_line.hpp"
#include "acc/plan/program.hpp"
#include "acc/plan/setting.hpp"

namespace acc {

/// The topology of the CPUs that acc may use and of a machine's GPUs, from the kernel.
Topology topology_of(const Machine& machine);

/// Everything that `resolve` looks at, gathered by the command beforehand.
struct LaunchInputs {
  Dialect dialect = Dialect::launch;
  CommandLine command_line = {};
  Environment environment = {};
  /// What the config file says, by setting name; each origin is `file:line`. Empty: there is no file.
  std::map<std::string, Setting, std::less<>> file = {};
  Machine machine = {};
  /// Run id of a `--standalone` job.
  std::string random_id = "standalone";
  /// How programs and interpreters are found.
  FileKindOf file_kind = kind_of_file;
  /// Asked only where workers are bound to CPUs: it costs a few files per CPU.
  std::function<Topology(const Machine&)> topology = topology_of;
};

}  // namespace acc
