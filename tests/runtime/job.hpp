// SPDX-License-Identifier: Apache-2.0
// The job of tests on several processes, with an Accelerator, and a small net.
#pragma once

#include <torch/nn/modules/linear.h>

#include <chrono>

#include "acc/runtime/accelerator/accelerator.hpp"
#include "runtime/process.hpp"

namespace acc::test {

// One Accelerator for all cases.
inline Accelerator& job() {
  static Accelerator accelerator({.process_group = {.timeout = std::chrono::minutes(1)}});
  return accelerator;
}

struct NetImpl : torch::nn::Module {
  explicit NetImpl(std::int64_t width = 4)
      : first(register_module("first", torch::nn::Linear(2, width))),
        second(register_module("second", torch::nn::Linear(width, 1))) {}

  at::Tensor forward(const at::Tensor& x, bool skip = false) {
    const at::Tensor hidden = first->forward(x);
    return skip ? hidden : second->forward(hidden.tanh());
  }

  torch::nn::Linear first;
  torch::nn::Linear second;
};
TORCH_MODULE(Net);

}  // namespace acc::test
