// SPDX-License-Identifier: Apache-2.0
#include "acc/base/byte_size.hpp"

#include <array>
#include <cmath>
#include <string>

#include "acc/base/error.hpp"
#include "acc/base/text.hpp"

namespace acc {

std::uint64_t parse_byte_size(std::string_view text, std::string_view where) {
  struct Unit {
    std::string_view name;
    double bytes;
  };
  constexpr std::array kUnits = {Unit{"KB", 1e3}, Unit{"MB", 1e6}, Unit{"GB", 1e9}, Unit{"TB", 1e12}};
  const std::string upper = to_upper(trim(text));
  for (const Unit& unit : kUnits) {
    if (!upper.ends_with(unit.name)) continue;
    const auto number = parse_number(upper.substr(0, upper.size() - unit.name.size()));
    if (number && *number > 0 && *number < 1e6)
      return static_cast<std::uint64_t>(std::llround(*number * unit.bytes));
  }
  throw Error({.what = "'" + std::string(text) + "' is no size",
               .where = std::string(where),
               .hint = "as in 5GB or 200MB"});
}

}  // namespace acc
