// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

namespace acc::detail {

/// Which numbers an argument takes: above 0; from 0; from 0 to below 1. NaN is in none.
enum class Range { positive, not_negative, below_one };

/// Throws Error{usage}, naming the argument, for a number outside of the range.
void require_in(Range range, double value, const std::string& argument);

}  // namespace acc::detail
