// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

#include "acc/base/error.hpp"
#include "acc/config/read.hpp"

namespace acc::launcher {

/// What in a file cannot hold together, though each value alone is fine: what `acc config check` tells on top
/// of read_config(). A launch decides itself, since flags may settle it.
std::vector<Problem> contradictions(const FileConfig& config);

}  // namespace acc::launcher
