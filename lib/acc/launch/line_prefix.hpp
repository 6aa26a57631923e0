// SPDX-License-Identifier: Apache-2.0
#pragma once

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

}  // namespace acc::launcher
