// SPDX-License-Identifier: Apache-2.0
// Shared by the tests on several processes: the job, a small net, and the Error of a function.
#pragma once

#include <ATen/ops/cat.h>
#include <c10/core/TensorOptions.h>
#include <torch/nn/modules/linear.h>

#include <functional>
#include <vector>

#include "acc/base/error.hpp"
#include "acc/runtime/accelerator/accelerator.hpp"

namespace acc::test {

// One Accelerator for all cases: a process joins its job once.
inline Accelerator& job() {
  static Accelerator accelerator({.process_group = {.timeout = std::chrono::minutes(1)}});
  return accelerator;
}

inline int rank() {
  return job().process_index();
}
inline int size() {
  return job().num_processes();
}

// On this process's device: suites run over NCCL, too (tests/gpu).
inline at::TensorOptions here(at::ScalarType type = at::kFloat) {
  return at::TensorOptions(job().device()).dtype(type);
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

inline Error error_of(const std::function<void()>& function) {
  try {
    function();
  } catch (const Error& error) {
    return error;
  }
  return Error({.what = "none"});
}

// All parameters as one flat tensor.
inline at::Tensor flat(const torch::nn::Module& module) {
  std::vector<at::Tensor> parts;
  for (const at::Tensor& parameter : module.parameters()) parts.push_back(parameter.detach().reshape({-1}));
  return at::cat(parts);
}

}  // namespace acc::test
