// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ATen/core/Tensor.h>
#include <torch/csrc/autograd/saved_variable.h>

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <vector>

#include "acc/runtime/recomputation/forward_state.hpp"
#include "acc/runtime/recomputation/saved_tensor_hooks.hpp"

namespace acc::detail {

/// Calls a function again, with these tensors as its inputs.
using Replay = std::function<void(const std::vector<at::Tensor>& inputs)>;

/// A tensor that an operator saved in the first pass, of which only the description is kept.
struct DroppedTensor;

/// A function whose operators save nothing for backward: when backward needs a tensor that they would have
/// saved, the function is called again, until it has computed all of them (the algorithm of PyTorch's
/// non-reentrant checkpoint). It lives as long as backward may need one. Nothing but the first pass's graph
/// runs backward, so hooks on parameters see what they see without.
class Recomputation : public std::enable_shared_from_this<Recomputation> {
 public:
  Recomputation(const std::vector<at::Tensor>& inputs, Replay replay);

  /// For the first pass. What it returns keeps this alive.
  Pack pack();

 private:
  at::Tensor take(DroppedTensor& tensor);
  std::vector<at::Tensor> inputs() const;
  void run();
  void keep(std::size_t index, const at::Tensor& tensor) const;

  // Saved as by an operator: the inputs of a function within another are computed again by that one.
  std::vector<torch::autograd::SavedVariable> inputs_ = {};
  Replay replay_;
  ForwardState state_;
  // In the order in which they were saved; those that backward does not need any more have expired.
  std::vector<std::weak_ptr<DroppedTensor>> dropped_ = {};
  // A backward has a thread for each device.
  std::mutex mutex_ = {};
};

/// The first pass of a function that is computed again in backward; it lasts as long as the object.
class FirstPass {
 public:
  FirstPass(std::vector<at::Tensor> inputs, Replay replay);

  /// Throws Error{usage} when the function changed an input in place.
  void require_unchanged_inputs() const;

 private:
  std::vector<at::Tensor> inputs_;
  std::vector<std::int64_t> versions_;
  SavedTensorHooks hooks_;
};

}  // namespace acc::detail
