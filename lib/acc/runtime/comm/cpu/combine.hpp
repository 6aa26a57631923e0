// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <c10/core/ScalarType.h>

#include <cstddef>
#include <cstdint>

namespace acc::detail {

/// What an all-reduce makes of two elements.
enum class Combination : std::uint8_t { sum, product, min, max };

/// Combines `count` elements: `result[i] = first[i] op second[i]`, where `result` may be `first`. Sums and
/// products of half and bfloat16 are computed in float and rounded, as Gloo does; minima and maxima are NaN
/// if either element is, whichever comes first.
using Combine = void (*)(void* result, const void* first, const void* second, std::size_t count);

/// The function for elements of `type`; null if it cannot be combined.
Combine combine_function(c10::ScalarType type, Combination combination);

/// Divides `count` elements in place.
using Divide = void (*)(void* elements, int divisor, std::size_t count);

/// The function for elements of `type`; null if it is not a floating-point type.
Divide divide_function(c10::ScalarType type);

}  // namespace acc::detail
