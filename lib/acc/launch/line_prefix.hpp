// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <map>
#include <string>
#include <string_view>

#include "acc/base/worker_env.hpp"

namespace acc::launcher {

/// Python's Template.safe_substitute: `$name` and `${name}` become the value of that name, `$$` becomes `$`,
/// and every other `$` stays as it is.
std::string substitute(std::string_view text, const std::map<std::string, std::string, std::less<>>& values);

/// What stands in front of the tee'd lines of a worker: the template with torchrun's `role_name`, `rank` and
/// `local_rank`, and with `group_rank`, `host` and `attempt`.
std::string line_prefix(std::string_view line_prefix_template, const WorkerEnv& place, int local_rank,
                        const std::string& host);

/// Local time with its offset, ISO 8601, to the millisecond: `2026-11-21T07:43:37.262+0100`.
std::string timestamp(std::chrono::system_clock::time_point when);

}  // namespace acc::launcher
