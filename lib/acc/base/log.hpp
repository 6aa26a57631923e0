// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <fmt/format.h>

#include <filesystem>
#include <functional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "acc/base/environment.hpp"
#include "acc/base/error.hpp"

/// What this process says to people: one logger, on spdlog. Until open() it is as Options{} has it.

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

  bool operator==(const Options&) const = default;
};

/// Takes whole lines for the process's standard error.
using Console = std::function<void(std::string_view lines)>;

/// Lines of this process, and of those that it forks, are written so from now on. Throws Error{system} when
/// the file cannot be opened.
void open(const Options& options);

/// Where lines go instead of standard error, as long as this lives: to a console that mixes them with
/// others'.
class ConsoleRedirect {
 public:
  explicit ConsoleRedirect(Console console);
  ~ConsoleRedirect();
  ConsoleRedirect(const ConsoleRedirect&) = delete;
  ConsoleRedirect& operator=(const ConsoleRedirect&) = delete;
};

bool is_on(Level level);

/// One line, or several that belong together.
void write(Level level, std::string_view text);

/// Whole lines as a reporter has rendered them, `acc: text` or what goes on with that: the console shows them
/// so, and a pattern gets the text.
void write_rendered(Level level, std::string_view lines);

/// Formatted only where somebody reads it.
template <class... Arguments>
void debug(fmt::format_string<Arguments...> format, Arguments&&... arguments) {
  if (is_on(Level::debug)) write(Level::debug, fmt::format(format, std::forward<Arguments>(arguments)...));
}
template <class... Arguments>
void trace(fmt::format_string<Arguments...> format, Arguments&&... arguments) {
  if (is_on(Level::trace)) write(Level::trace, fmt::format(format, std::forward<Arguments>(arguments)...));
}

}  // namespace acc::log
