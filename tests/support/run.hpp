// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "acc/base/environment.hpp"

namespace acc::test {

/// The result of a program: the exit code as in a shell (128 + signal), and its output.
struct Run {
  int code = 0;
  std::string out = {};
  std::string err = {};
};

/// Runs a program of build/<preset>/bin (a bare name) or any other (a path) to its end, with nothing on its
/// standard input unless `input` is given. `environment` is all that it gets.
Run run(const std::vector<std::string>& command, const Environment& environment,
        const std::string& input = "", const std::string& folder = ".");

/// A minimal environment: PATH and the like, HOME in `home`, and no variables of acc.
Environment clean_environment(const std::string& home);

}  // namespace acc::test
