// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ATen/core/Tensor.h>

#include <string>
#include <string_view>

namespace acc::detail {

/// A dense tensor as bytes for another process, contiguous and without its gradient; empty: undefined.
std::string text_of_tensor(const at::Tensor& tensor);

/// The tensor on the CPU. Throws Error{system} with `where` for bytes that are not one.
at::Tensor tensor_of_text(std::string_view text, std::string_view where);

}  // namespace acc::detail
