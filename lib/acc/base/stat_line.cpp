// SPDX-License-Identifier: Apache-2.0
#include "acc/base/stat_line.hpp"

#include <cstddef>

#include "acc/base/files.hpp"
#include "acc/base/text.hpp"

namespace acc {

std::string_view StatLine::field(int number) const {
  std::string_view rest = fields;
  for (int skipped = 3; skipped < number; ++skipped) {
    const std::size_t space = rest.find(' ');
    if (space == std::string_view::npos) return {};
    rest.remove_prefix(space + 1);
  }
  return rest.substr(0, rest.find(' '));
}

std::optional<StatLine> parse_stat_line(std::string_view text) {
  const std::size_t name_begin = text.find('(');
  const std::size_t name_end = text.rfind(')');
  if (name_begin == std::string_view::npos || name_end == std::string_view::npos || name_end < name_begin)
    return std::nullopt;
  return StatLine{.pid = trim(text.substr(0, name_begin)),
                  .name = text.substr(name_begin + 1, name_end - name_begin - 1),
                  .fields = trim(text.substr(name_end + 1))};
}

std::uint64_t process_start(const std::string& process) {
  constexpr int kStartField = 22;
  const std::string text = first_line_of("/proc/" + process + "/stat");
  const auto line = parse_stat_line(text);
  const auto start = line ? parse_integer(line->field(kStartField)) : std::nullopt;
  return static_cast<std::uint64_t>(start.value_or(0));
}

}  // namespace acc
