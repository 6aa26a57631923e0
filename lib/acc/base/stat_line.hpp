// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace acc {

/// A line of /proc/PID/stat in its parts, which point into its text.
struct StatLine {
  std::string_view pid = {};
  /// The program's name, without its parentheses; it may contain spaces and parentheses itself.
  std::string_view name = {};
  /// What follows, separated by single spaces: from field 3 of proc(5), the state, on.
  std::string_view fields = {};

  /// One of `fields`, by its number in proc(5); empty if the line is shorter.
  std::string_view field(int number) const;
};

/// Absent if the text is not such a line, for instance because the process has ended.
std::optional<StatLine> parse_stat_line(std::string_view text);

/// When a process started, in the kernel's clock ticks (proc(5), starttime); 0 if there is none. `process`:
/// its pid, or `self`.
std::uint64_t process_start(const std::string& process);

}  // namespace acc
