// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "acc/base/environment.hpp"
#include "acc/base/error.hpp"

namespace acc::log {

/// Each level includes those after it.
enum class Level { trace, debug, info, warn, error, off };

/// Takes the names above in any case, and those of Python's logging (WARNING, CRITICAL, NOTSET). Throws
/// Error{usage} with `where` for anything else.
Level parse_level(std::string_view name, std::string_view where);

/// What ACC_LOG_LEVEL says, else LOGLEVEL, else info. Other programs read LOGLEVEL too: a word that is not a
/// level counts as absent.
Level level_of(const Environment& environment);

/// One for each of these variables that holds such a word, to be told as a warning.
std::vector<Problem> ignored_levels(const Environment& environment);

struct Options {
  Level level = Level::info;
  /// Gets every line too, behind what is there already; a missing folder is created. Empty: no file.
  std::filesystem::path file = {};
  /// As spdlog's set_pattern() takes it, with `%N` for the name of this machine, for console and file. Empty:
  /// `acc: text` on the console, and time, level, machine, process number and text in the file.
  std::string pattern = {};
};

}  // namespace acc::log
