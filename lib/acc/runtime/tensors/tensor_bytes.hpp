// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace acc::detail {

/// A dense tensor in the bytes that one process sends to another, apart from what LibTorch knows of it.
struct TensorBytes {
  std::int64_t type = 0;  ///< at::ScalarType
  std::size_t element_size = 1;
  std::vector<std::int64_t> sizes = {};
  std::string_view elements = {};  ///< in the order of the sizes
};

std::string to_text(const TensorBytes& tensor);

/// Throws Error{system} with `where` unless these are as many elements as the sizes say. The elements remain
/// those of `text`.
TensorBytes parse_tensor_bytes(std::string_view text, std::string_view where);

}  // namespace acc::detail
