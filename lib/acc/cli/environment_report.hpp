// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "acc/base/machine.hpp"
#include "acc/cli/host_facts.hpp"
#include "acc/config/read.hpp"

namespace acc::launcher {

/// The facts that `acc env` reports, gathered by the command.
struct EnvironmentFacts {
  std::string version = {};
  std::filesystem::path program = {};
  /// The Python for scripts; empty if none is found.
  std::filesystem::path python = {};
  /// The versions of its packages by name.
  std::map<std::string, std::string> packages = {};
  /// The folder of the LibTorch that a build of acc would use; empty if none is found.
  std::filesystem::path libtorch = {};
  std::string compiler = {};
  std::string scheduler = {};
  std::vector<NumaNode> numa = {};
  Machine machine = {};
  /// The config file if there is one, and whether it is the default one.
  std::optional<FileConfig> config = {};
  bool config_is_default = true;
};

/// The text for bug reports: the fields of `accelerate env` in its order, and the config. Starts no
/// program.
std::string environment_report(const EnvironmentFacts& facts);

/// The version of a Python, derived from its path or virtual environment; empty if unknown.
std::string python_version(const std::filesystem::path& python);

/// `Linux-6.1.0-x86_64-with-glibc2.36`, as Python's platform module writes it.
std::string platform_name();

}  // namespace acc::launcher
