// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "acc/base/environment.hpp"
#include "acc/base/machine.hpp"
#include "acc/config/read.hpp"

namespace acc {

/// What `acc env` tells, found by the command beforehand.
struct EnvironmentFacts {
  std::string version = {};
  std::filesystem::path program = {};
  Environment environment = {};
  Machine machine = {};
  /// The config file, and whether it is the default one; absent: there is none.
  std::optional<FileConfig> config = {};
  bool config_is_default = true;
};

/// The lines that people paste into bug reports: accelerate's fields, in its order, and the config. Starts
/// no program. Ends with a newline.
std::string environment_report(const EnvironmentFacts& facts);

/// A Python that scripts would run under, and its version as far as its place tells.
struct PythonFound {
  std::filesystem::path program = {};
  std::string version = {};
};
std::optional<PythonFound> find_python(const Environment& environment);

/// `Linux-6.1.0-x86_64-with-glibc2.36`, as Python's platform module writes it.
std::string platform_name();

}  // namespace acc
