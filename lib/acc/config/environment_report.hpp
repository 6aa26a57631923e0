// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "acc/base/machine.hpp"
#include "acc/config/host_facts.hpp"
#include "acc/config/read.hpp"

namespace acc::launcher {

/// What `acc env` tells, found by the command beforehand.
struct EnvironmentFacts {
  std::string version = {};
  std::filesystem::path program = {};
  /// The Python that scripts would run under; empty: none is found.
  std::filesystem::path python = {};
  /// Versions of that Python's packages, by name.
  std::map<std::string, std::string> packages = {};
  /// Of the C++ library that acc's runtime would find; empty: none is found.
  std::filesystem::path libtorch = {};
  std::string compiler = {};
  std::string scheduler = {};
  std::vector<NumaNode> numa = {};
  Machine machine = {};
  /// The config file, and whether it is the default one; absent: there is none.
  std::optional<FileConfig> config = {};
  bool config_is_default = true;
};

/// The lines that people paste into bug reports: accelerate's fields, in its order, and the config. Starts
/// no program. Ends with a newline.
std::string environment_report(const EnvironmentFacts& facts);

/// The version of a Python as far as its place tells; empty: it does not.
std::string python_version(const std::filesystem::path& python);

/// `Linux-6.1.0-x86_64-with-glibc2.36`, as Python's platform module writes it.
std::string platform_name();

}  // namespace acc::launcher
