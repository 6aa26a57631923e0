// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace acc::launcher {

/// A tensor as the head of a safetensors file tells it.
struct TensorInfo {
  std::string name = {};
  /// safetensors' name of the type: F32, BF16, I64, ...
  std::string dtype = "F32";
  std::vector<std::int64_t> shape = {};
  /// Where its bytes are, counted from the end of the head.
  std::uint64_t begin = 0;
  std::uint64_t end = 0;

  bool operator==(const TensorInfo&) const = default;
};

/// Elements of the tensor; 1 for a scalar.
inline std::int64_t elements(const TensorInfo& tensor) {
  std::int64_t count = 1;
  for (const std::int64_t size : tensor.shape) count *= size;
  return count;
}

}  // namespace acc::launcher
