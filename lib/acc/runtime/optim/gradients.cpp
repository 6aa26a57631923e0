// SPDX-License-Identifier: Apache-2.0
#include "acc/runtime/optim/gradients.hpp"

#include <ATen/TensorOperators.h>
#include <ATen/core/grad_mode.h>
#include <ATen/ops/_foreach_clamp_max.h>
#include <ATen/ops/_foreach_clamp_min.h>
#include <ATen/ops/_foreach_mul.h>
#include <ATen/ops/_foreach_norm.h>
#include <ATen/ops/linalg_vector_norm.h>
#include <ATen/ops/stack.h>
#include <ATen/ops/zeros.h>
#include <fmt/format.h>

#include <algorithm>

#include "acc/base/error.hpp"
#include "acc/runtime/sharded/sharded_gradients.hpp"

namespace acc {

GradientState::GradientState(int num_steps, GradientAccumulationOptions options) : options_(options) {
  set_num_steps(num_steps);
}

void GradientState::set_num_steps(int num_steps) {
  if (num_steps < 1) {
    throw Error({.what = fmt::format("must be at least 1, not {}", num_steps),
                 .where = "gradient_accumulation_steps"});
  }
  num_steps_ = num_steps;
}

void GradientState::next_batch(bool end_of_dataloader) {
  if (options_.sync_with_dataloader && end_of_dataloader) {
    step_ = 0;
    sync_gradients_ = true;
    return;
  }
  ++step_;
  sync_gradients_ = step_ % num_steps_ == 0;
}

at::Tensor clip_grad_norm(const std::vector<at::Tensor>& parameters, double max_norm, double norm_type) {
  const at::NoGradGuard no_grad;
  detail::require_no_shard_parts(parameters, "clip_grad_norm");
  if (detail::any_is_sharded(parameters)) {
    throw Error({.what = "some of the parameters are sharded, and a process alone does not know the norm",
                 .where = "clip_grad_norm",
                 .hint = "call accelerator.clip_grad_norm_"});
  }
  const std::vector<at::Tensor> gradients = detail::local_gradients(parameters).whole;
  if (gradients.empty()) return at::zeros({});
  std::vector<at::Tensor> norms = at::_foreach_norm(gradients, norm_type);
  for (at::Tensor& norm : norms) norm = norm.to(norms.front().device());
  at::Tensor total = at::linalg_vector_norm(at::stack(norms), norm_type);
  // Multiplies even by a factor of 1, since a comparison would wait for the GPU.
  at::_foreach_mul_(gradients, (max_norm / (total + 1e-6)).clamp_max(1.0));
  return total;
}

namespace {

void require_no_complex(const std::vector<at::Tensor>& gradients) {
  if (std::ranges::none_of(gradients, &at::Tensor::is_complex)) return;
  throw Error({.what = "some of the gradients are complex, and complex numbers are in no order",
               .where = "clip_grad_value",
               .hint = "clip them by their norm (clip_grad_norm)"});
}

}  // namespace

void clip_grad_value(const std::vector<at::Tensor>& parameters, double clip_value) {
  const at::NoGradGuard no_grad;
  const detail::LocalGradients local = detail::local_gradients(parameters);
  require_no_complex(local.whole);
  for (const std::vector<at::Tensor>& gradients : {local.whole, local.sharded}) {
    if (gradients.empty()) continue;
    at::_foreach_clamp_min_(gradients, -clip_value);
    at::_foreach_clamp_max_(gradients, clip_value);
  }
}

}  // namespace acc
