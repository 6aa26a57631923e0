// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ATen/core/Tensor.h>

#include <unordered_set>
#include <vector>

namespace acc {

/// Removes the tensors of `tensors` that came before, in order. LibTorch's `parameters()` lists those of a
/// module that is registered twice (tied weights) twice, Python's lists them once.
inline void keep_distinct(std::vector<at::Tensor>& tensors) {
  std::unordered_set<const c10::TensorImpl*> seen;
  std::erase_if(tensors,
                [&](const at::Tensor& tensor) { return !seen.insert(tensor.unsafeGetTensorImpl()).second; });
}

}  // namespace acc
