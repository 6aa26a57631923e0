// SPDX-License-Identifier: Apache-2.0
#include "acc/weights/dtype.hpp"

#include <algorithm>
#include <array>
#include <utility>

namespace acc::launcher {

std::optional<int> bits_of(std::string_view dtype) {
  using Row = std::pair<std::string_view, int>;
  constexpr std::array<Row, 20> kRows = {{
      {"F64", 64},    {"I64", 64},    {"U64", 64},    {"C64", 64},    {"F32", 32},
      {"I32", 32},    {"U32", 32},    {"F16", 16},    {"BF16", 16},   {"I16", 16},
      {"U16", 16},    {"I8", 8},      {"U8", 8},      {"BOOL", 8},    {"F8_E4M3", 8},
      {"F8_E5M2", 8}, {"F8_E8M0", 8}, {"F6_E2M3", 6}, {"F6_E3M2", 6}, {"F4", 4},
  }};
  const auto* found = std::ranges::find(kRows, dtype, &Row::first);
  return found == kRows.end() ? std::nullopt : std::optional(found->second);
}

}  // namespace acc::launcher
