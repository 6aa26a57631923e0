// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "acc/control/rank_state.hpp"

namespace acc::launcher {

/// Where a Python program stands, in the terms of its author.
struct PythonPosition {
  /// The innermost line that is not a library's: `train.py:6`.
  std::string line = {};
  /// The function of a library that was called there: `all_reduce`; empty if none in Python is.
  std::string call = {};
  /// The call waits for other processes.
  bool waits = false;

  auto operator<=>(const PythonPosition&) const = default;
};

/// The position of the main thread in a dump of `py-spy dump --full-filenames`. Absent if the dump has none.
std::optional<PythonPosition> position_of_main_thread(std::string_view dump);

/// The position at which the last traceback in `text` was raised. Absent if there is none.
std::optional<PythonPosition> position_of_traceback(std::string_view text);

/// `in all_reduce at train.py:4`, `at train.py:6`; printable().
std::string to_string(const PythonPosition& position);

/// The dump with the names of library files as Python imports them: `torch/_tensor.py`.
std::string shorten_python_stacks(std::string_view dump);

/// The same for find_stragglers().
RankStanding standing_of(const PythonPosition& position);

}  // namespace acc::launcher
