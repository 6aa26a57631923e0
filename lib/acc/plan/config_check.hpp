// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

#include "acc/base/error.hpp"
#include "acc/config/read.hpp"

namespace acc::launcher {

/// Why a launch without flags would refuse this file on any machine: the first reason, and what would prevent
/// the start where the GPUs are there. `acc config check` reports it.
std::vector<Problem> launch_problems(const FileConfig& config);

}  // namespace acc::launcher
