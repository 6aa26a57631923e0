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
struct PythonPlace {
  /// The innermost line that is not a library's: `train.py:6`.
  std::string line = {};
  /// The function of a library that was called there: `all_reduce`; empty if none in Python is.
  std::string call = {};
  /// The call waits for other processes.
  bool waits = false;

  auto operator<=>(const PythonPlace&) const = default;
};

/// The place of the main thread in a dump of `py-spy dump --full-filenames`. Absent if the dump has none.
std::optional<PythonPlace> place_of_main_thread(std::string_view dump);

/// The place where the last traceback in `text` was raised. Absent if there is none.
std::optional<PythonPlace> place_of_traceback(std::string_view text);

/// `in all_reduce at train.py:4`, `at train.py:6`; printable().
std::string to_string(const PythonPlace& place);

/// The dump with the names of library files as Python imports them: `torch/_tensor.py`.
std::string shorten_python_stacks(std::string_view dump);

/// The same for find_stragglers().
RankStanding standing_of(const PythonPlace& place);

}  // namespace acc::launcher
