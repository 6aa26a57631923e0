// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>

#include "acc/launch/launch_report.hpp"

namespace acc::launcher {

/// A failure as one line of JSON, for other nodes. The traceback and the last words are cut to 16 KiB each.
std::string to_json_text(const WorkerFailure& failure);

/// What is missing or not understood keeps its default: a report in part is better than none.
WorkerFailure parse_failure(std::string_view text);

}  // namespace acc::launcher
