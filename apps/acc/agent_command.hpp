// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "launch_command.hpp"

namespace acc::launcher {

/// With --hosts or --hostfile: runs the job of `acc launch WORDS...` on those hosts and returns its exit
/// code. Absent without them.
std::optional<int> launch_on_hosts(const GatheredInputs& gathered, const std::vector<std::string>& words);

}  // namespace acc::launcher
