// SPDX-License-Identifier: Apache-2.0
/// What the tests on several processes share: this process in its job, its tensors, and the Error of a
/// function.
#pragma once

#include <ATen/ops/cat.h>
#include <c10/core/TensorOptions.h>
#include <torch/nn/module.h>

#include <chrono>
#include <functional>
#include <vector>

#include "acc/base/error.hpp"
#include "acc/runtime/process/partial_state.hpp"

namespace acc::test {

/// One state for all cases: a process joins its job once.
inline PartialState& job_state() {
  static PartialState state(std::chrono::minutes(1));
  return state;
}

inline int rank() {
  return job_state().process_index();
}
inline int size() {
  return job_state().num_processes();
}

/// Options of tensors on the device of this process: suites run over NCCL, too (tests/gpu).
inline at::TensorOptions here(at::ScalarType type = at::kFloat) {
  return at::TensorOptions(job_state().device()).dtype(type);
}

/// The Error that `function` throws; without one, an Error that says `none`.
inline Error caught_error(const std::function<void()>& function) {
  try {
    function();
  } catch (const Error& error) {
    return error;
  }
  return Error({.what = "none"});
}

/// All parameters as one flat tensor.
inline at::Tensor flat(const torch::nn::Module& module) {
  std::vector<at::Tensor> parts;
  for (const at::Tensor& parameter : module.parameters()) parts.push_back(parameter.detach().reshape({-1}));
  return at::cat(parts);
}

}  // namespace acc::test
