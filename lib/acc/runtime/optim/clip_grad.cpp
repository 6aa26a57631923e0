// SPDX-License-Identifier: Apache-2.0
#include "acc/runtime/optim/clip_grad.hpp"

#include <ATen/TensorOperators.h>
#include <ATen/core/grad_mode.h>
#include <ATen/ops/_foreach_clamp_max.h>
#include <ATen/ops/_foreach_clamp_min.h>
#include <ATen/ops/_foreach_mul.h>
#include <ATen/ops/_foreach_norm.h>
#include <ATen/ops/linalg_vector_norm.h>
#include <ATen/ops/stack.h>
#include <ATen/ops/zeros.h>

#include "acc/runtime/distinct_tensors.hpp"

namespace acc {
namespace {

std::vector<at::Tensor> gradients_of(const std::vector<at::Tensor>& parameters) {
  std::vector<at::Tensor> distinct = parameters;
  keep_distinct(distinct);
  std::vector<at::Tensor> gradients;
  for (const at::Tensor& parameter : distinct) {
    if (parameter.grad().defined()) gradients.push_back(parameter.grad());
  }
  return gradients;
}

}  // namespace

at::Tensor clip_grad_norm(const std::vector<at::Tensor>& parameters, double max_norm, double norm_type) {
  const at::NoGradGuard no_grad;
  const std::vector<at::Tensor> gradients = gradients_of(parameters);
  if (gradients.empty()) return at::zeros({});
  std::vector<at::Tensor> norms = at::_foreach_norm(gradients, norm_type);
  for (at::Tensor& norm : norms) norm = norm.to(norms.front().device());
  at::Tensor total = at::linalg_vector_norm(at::stack(norms), norm_type);
  // Multiplied also where the factor is 1: to ask first would wait for a GPU.
  at::_foreach_mul_(gradients, (max_norm / (total + 1e-6)).clamp_max(1.0));
  return total;
}

void clip_grad_value(const std::vector<at::Tensor>& parameters, double clip_value) {
  const at::NoGradGuard no_grad;
  const std::vector<at::Tensor> gradients = gradients_of(parameters);
  if (gradients.empty()) return;
  at::_foreach_clamp_min_(gradients, -clip_value);
  at::_foreach_clamp_max_(gradients, clip_value);
}

}  // namespace acc
