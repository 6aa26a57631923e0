// SPDX-License-Identifier: Apache-2.0
#include "acc/runtime/comm/cpu/combine.hpp"

#include <c10/util/BFloat16.h>
#include <c10/util/Half.h>

#include <cmath>
#include <type_traits>

namespace acc::detail {
namespace {

template <class T>
constexpr bool kIsSmallFloat = std::is_same_v<T, c10::Half> || std::is_same_v<T, c10::BFloat16>;

template <class T>
using Computed = std::conditional_t<kIsSmallFloat<T>, float, T>;

template <Combination combination, class T>
T combined(T first, T second) {
  if constexpr (combination == Combination::min || combination == Combination::max) {
    // False for a NaN on either side; then a first NaN is kept, and otherwise the second one is.
    const bool keep_first = combination == Combination::min ? first < second : first > second;
    if constexpr (std::is_floating_point_v<T>) return keep_first || std::isnan(first) ? first : second;
    return keep_first ? first : second;
  } else if constexpr (std::is_integral_v<T>) {
    // Integers wrap around.
    using Promoted = std::common_type_t<T, int>;
    using Unsigned = std::make_unsigned_t<Promoted>;
    const auto a = static_cast<Unsigned>(static_cast<Promoted>(first));
    const auto b = static_cast<Unsigned>(static_cast<Promoted>(second));
    return static_cast<T>(combination == Combination::sum ? a + b : a * b);
  } else {
    return combination == Combination::sum ? first + second : first * second;
  }
}

template <class T, Combination combination>
void combine(void* result, const void* first, const void* second, std::size_t count) {
  auto* const to = static_cast<T*>(result);
  const auto* const a = static_cast<const T*>(first);
  const auto* const b = static_cast<const T*>(second);
#ifndef __clang__
#pragma GCC ivdep
#endif
  for (std::size_t i = 0; i < count; ++i) {
    to[i] =
        static_cast<T>(combined<combination>(static_cast<Computed<T>>(a[i]), static_cast<Computed<T>>(b[i])));
  }
}

template <class T>
Combine combine_function_of(Combination combination) {
  switch (combination) {
    case Combination::sum:
      return combine<T, Combination::sum>;
    case Combination::product:
      return combine<T, Combination::product>;
    case Combination::min:
      return combine<T, Combination::min>;
    case Combination::max:
      return combine<T, Combination::max>;
  }
  return nullptr;
}

template <class T>
void divide(void* elements, int divisor, std::size_t count) {
  auto* const values = static_cast<T*>(elements);
  const auto by = static_cast<Computed<T>>(divisor);
  for (std::size_t i = 0; i < count; ++i)
    values[i] = static_cast<T>(static_cast<Computed<T>>(values[i]) / by);
}

}  // namespace

Combine combine_function(c10::ScalarType type, Combination combination) {
  switch (type) {
    case c10::ScalarType::Float:
      return combine_function_of<float>(combination);
    case c10::ScalarType::Double:
      return combine_function_of<double>(combination);
    case c10::ScalarType::Half:
      return combine_function_of<c10::Half>(combination);
    case c10::ScalarType::BFloat16:
      return combine_function_of<c10::BFloat16>(combination);
    case c10::ScalarType::Byte:
      return combine_function_of<std::uint8_t>(combination);
    case c10::ScalarType::Char:
      return combine_function_of<std::int8_t>(combination);
    case c10::ScalarType::Int:
      return combine_function_of<std::int32_t>(combination);
    case c10::ScalarType::Long:
      return combine_function_of<std::int64_t>(combination);
    default:
      return nullptr;
  }
}

Divide divide_function(c10::ScalarType type) {
  switch (type) {
    case c10::ScalarType::Float:
      return divide<float>;
    case c10::ScalarType::Double:
      return divide<double>;
    case c10::ScalarType::Half:
      return divide<c10::Half>;
    case c10::ScalarType::BFloat16:
      return divide<c10::BFloat16>;
    default:
      return nullptr;
  }
}

}  // namespace acc::detail
