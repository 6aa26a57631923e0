// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "acc/base/environment.hpp"

namespace acc::test {

/// What a finished program left: as a shell sees it, exit code or 128 + signal.
struct Run {
  int code = 0;
  std::string out = {};
  std::string err = {};
};

/// Runs a program of build/<preset>/bin (a bare name) or any other (a path) to its end, with nothing on its
/// standard input unless `input` is given. `environment` is all that it gets.
Run run(const std::vector<std::string>& command, const Environment& environment,
        const std::string& input = "", const std::string& folder = ".");

/// PATH and the like, HOME in `home`, and none of the variables that steer acc.
Environment clean_environment(const std::string& home);

}  // namespace acc::test
