// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <fmt/format.h>

#include <functional>
#include <string_view>
#include <utility>

#include "acc/base/log_options.hpp"

/// What this process says to people: one logger, on spdlog. Until open() it is as Options{} has it.
namespace acc::log {

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
