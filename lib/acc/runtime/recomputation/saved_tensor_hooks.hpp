// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ATen/core/Tensor.h>

#include <functional>

namespace acc::detail {

/// Returns the tensor that was packed. Called when backward needs it, on any thread.
using Unpack = std::function<at::Tensor()>;

/// Called with each tensor that an operator saves for backward. What the result holds is all that is saved.
using Pack = std::function<Unpack(const at::Tensor&)>;

/// While it exists, tensors that operators of this thread save for backward go through `pack`, as with
/// Python's torch.autograd.graph.saved_tensors_hooks. Of several, the last one is in effect.
class SavedTensorHooks {
 public:
  explicit SavedTensorHooks(Pack pack);
  ~SavedTensorHooks();
  SavedTensorHooks(const SavedTensorHooks&) = delete;
  SavedTensorHooks& operator=(const SavedTensorHooks&) = delete;

 private:
  Pack pack_;
};

/// Whether this thread has hooks, as within acc::checkpoint.
bool has_saved_tensor_hooks();

}  // namespace acc::detail
