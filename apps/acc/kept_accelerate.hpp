// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "acc/base/environment.hpp"
#include "acc/base/error.hpp"

namespace acc::launcher {

/// How acc was called instead of accelerate.
struct AccelerateCaller {
  std::filesystem::path path = {};
  /// The Python that would have run accelerate, where it is known.
  std::string python = {};
  /// With `python -m`, which finds modules in the current folder, too.
  bool as_module = false;
};

/// The accelerate whose name acc has: the program that `acc install-accelerate` kept, or the package of a
/// Python that would have run it. It gets what acc does not do.
class KeptAccelerate {
 public:
  /// The program is looked for beside the path of the caller, and beside each file that this is a link to.
  /// With a `python` it is that Python's package. Takes out of the environment what says that this process
  /// was started by that program.
  KeptAccelerate(const AccelerateCaller& caller, Environment& environment);

  bool exists() const { return !command_.empty(); }

  /// Becomes `accelerate WORDS`. Throws Error{system} if it cannot be started, or has called acc itself.
  [[noreturn]] void become(const std::vector<std::string>& words) const;

  /// The same; where there is none, an error that says what acc does not do.
  [[noreturn]] void become_or_refuse(const std::vector<std::string>& words, const std::string& reason) const;

  /// That error: `where` is what was asked for.
  static Error refusal(const std::string& where, const std::string& reason);

 private:
  std::vector<std::string> command_ = {};
  /// The program by which this process was started.
  std::string handed_on_ = {};
  Environment environment_ = {};
};

}  // namespace acc::launcher
