// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <string>

namespace acc {

// A tensor's type and shape as numbers, as many for each tensor, which processes tell each other before the
// tensor itself.

constexpr std::int64_t kMostDimensions = 16;
// Type and number of dimensions come before the sizes.
constexpr std::int64_t kFormSizes = 2;
constexpr std::int64_t kFormSize = kFormSizes + kMostDimensions;

/// Writes kFormSize numbers. Throws Error{usage} at `where` for a tensor of more than kMostDimensions.
void write_form(const at::Tensor& tensor, std::int64_t* numbers, const std::string& where);

/// A tensor of this form on the CPU, its content undefined.
at::Tensor empty_of_form(const std::int64_t* numbers);

/// As in "Float [4, 2]".
std::string form_text(const std::int64_t* numbers);

}  // namespace acc
