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

/// The logger of this process, on spdlog. Until open() it has the default Options.

namespace acc::log {

/// In ascending severity: each level includes those after it.
enum class Level { trace, debug, info, warn, error, off };

/// Parses the names above in any case, and those of Python's logging (WARNING, CRITICAL, NOTSET). Throws
/// Error{usage} with `where` for anything else.
Level parse_level(std::string_view name, std::string_view where);

/// The level of ACC_LOG_LEVEL, else of LOGLEVEL, else info. An invalid level is ignored, since other programs
/// read LOGLEVEL too.
Level level_of(const Environment& environment);

/// A warning for each of these variables that has an invalid level.
std::vector<Problem> ignored_levels(const Environment& environment);

struct Options {
  Level level = Level::info;
  /// A file to which every line is appended, too; a missing folder is created. Empty: no file.
  std::filesystem::path file = {};
  /// The pattern of spdlog's set_pattern() for console and file, with `%N` for the name of this machine.
  /// Empty: `acc: text` on the console, and time, level, machine, pid and text in the file.
  std::string pattern = {};

  bool operator==(const Options&) const = default;
};

/// Receives whole lines for the process's standard error.
using Console = std::function<void(std::string_view lines)>;

/// Sets the options of this process, which forks inherit. Throws Error{system} if the file cannot be opened.
void open(const Options& options);

/// For its lifetime, redirects lines from standard error to a console that merges them with the workers'.
class ConsoleRedirect {
 public:
  explicit ConsoleRedirect(Console console);
  ~ConsoleRedirect();
  ConsoleRedirect(const ConsoleRedirect&) = delete;
  ConsoleRedirect& operator=(const ConsoleRedirect&) = delete;
};

/// Gives all lines for standard error to `console` instead, in this process and its forks; a ConsoleRedirect
/// then has no effect.
void send_to(Console console);

bool is_on(Level level);

/// Writes one line, or several that belong together.
void write(Level level, std::string_view text);

/// Writes whole lines that a reporter has rendered, `acc: text` or a continuation of it: the console shows
/// them unchanged, and a pattern gets the text.
void write_rendered(Level level, std::string_view lines);

/// Formatted only if the level is enabled.
template <class... Arguments>
void debug(fmt::format_string<Arguments...> format, Arguments&&... arguments) {
  if (is_on(Level::debug)) write(Level::debug, fmt::format(format, std::forward<Arguments>(arguments)...));
}
template <class... Arguments>
void trace(fmt::format_string<Arguments...> format, Arguments&&... arguments) {
  if (is_on(Level::trace)) write(Level::trace, fmt::format(format, std::forward<Arguments>(arguments)...));
}

}  // namespace acc::log
