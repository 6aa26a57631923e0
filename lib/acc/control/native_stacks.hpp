// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>

namespace acc::launcher {

/// gdb's `thread apply all bt` for a person: threads that stand in the same place are one block, `Threads
/// 2-9:`, and addresses, arguments, the frames below Python's
/// interpreter and chatter are left out. Empty when the text holds no stack.
std::string shorten_native_stacks(std::string_view gdb_output);

/// Why gdb showed nothing, in its own words.
std::string native_stacks_problem(std::string_view gdb_output);

}  // namespace acc::launcher
