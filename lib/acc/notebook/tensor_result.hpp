// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ATen/core/Tensor.h>

#include <string>
#include <string_view>

#include "acc/notebook/result_text.hpp"

namespace acc::detail {

/// A tensor arrives on the CPU, contiguous and without its gradient.
template <>
struct ResultText<at::Tensor> {
  static std::string write(const at::Tensor& result);
  static at::Tensor read(std::string_view text);
};

}  // namespace acc::detail
