// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string_view>

namespace acc {

/// Whether a name that a file or another process gives stays below the folder to which it is appended,
/// whatever is there: its parts between `/` are names, neither empty nor `.` or `..`, and it has no zero
/// byte, at which the system would end it.
bool is_below_folder(std::string_view name);

}  // namespace acc
