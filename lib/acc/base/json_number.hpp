// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <concepts>
#include <cstdint>
#include <optional>
#include <utility>

namespace acc {

/// The whole number in a value of the JSON library; nullopt for anything else, and for one that `Number`
/// cannot hold, which the library itself would convert without a word.
template <std::integral Number, class Json>
std::optional<Number> whole_number(const Json& value) {
  if (value.is_number_unsigned()) {
    const auto number = value.template get<std::uint64_t>();
    return std::in_range<Number>(number) ? std::optional(static_cast<Number>(number)) : std::nullopt;
  }
  if (!value.is_number_integer()) return std::nullopt;
  const auto number = value.template get<std::int64_t>();
  return std::in_range<Number>(number) ? std::optional(static_cast<Number>(number)) : std::nullopt;
}

}  // namespace acc
