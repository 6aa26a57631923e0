// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <optional>
#include <string>
#include <vector>

#include "acc/base/environment.hpp"

namespace acc {

/// What a command wrote to stdout and stderr, at most 64 KiB, with no input; whatever its exit code. Absent
/// when it cannot be started or has not ended within `limit`; it is killed then.
std::optional<std::string> output_of(const std::vector<std::string>& command, const Environment& environment,
                                     std::chrono::milliseconds limit);

}  // namespace acc
