// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>

namespace acc::launcher {

// What charts with a logarithmic scale need. Not of libm: acc does without it, since to load it takes a part
// of each start. All numbers are greater than 0.

/// To twelve digits.
double log2_of(double value);

/// The `count`-th root of a number from 1 on.
double root_of(double value, std::size_t count);

double power_of(double value, std::size_t exponent);

/// The greatest power of ten up to the value.
double power_of_ten_below(double value);

}  // namespace acc::launcher
