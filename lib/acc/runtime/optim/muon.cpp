// SPDX-License-Identifier: Apache-2.0
#include "acc/runtime/optim/muon.hpp"

#include <ATen/core/grad_mode.h>
#include <ATen/ops/addmm.h>
#include <ATen/ops/zeros_like.h>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>

#include "acc/base/error.hpp"

namespace acc {
namespace {

// The nearest orthogonal matrix, approximately, by Newton-Schulz iterations in bfloat16.
at::Tensor orthogonalized(const at::Tensor& matrix, const MuonOptions& options) {
  const auto [a, b, c] = options.ns_coefficients();
  const bool is_tall = matrix.size(0) > matrix.size(1);
  at::Tensor result = matrix.to(at::kBFloat16, /*non_blocking=*/false, /*copy=*/true);
  if (is_tall) result = result.t();
  result.div_(result.norm().clamp(options.eps()));
  for (std::int64_t i = 0; i < options.ns_steps(); ++i) {
    const at::Tensor gram = result.matmul(result.t());
    result = at::addmm(result, at::addmm(gram, gram, gram, b, c), result, a);
  }
  return is_tall ? result.t() : result;
}

double adjusted_rate(const MuonOptions& options, const at::Tensor& parameter) {
  const auto rows = static_cast<double>(parameter.size(0));
  const auto columns = static_cast<double>(parameter.size(1));
  const std::string kind = options.adjust_lr_fn().value_or("original");
  if (kind == "original") return options.lr() * std::sqrt(std::max(1.0, rows / columns));
  if (kind == "match_rms_adamw") return options.lr() * 0.2 * std::sqrt(std::max(rows, columns));
  throw Error({.what = "'" + kind + "' is not one of its values",
               .where = "Muon: adjust_lr_fn",
               .hint = "use original or match_rms_adamw"});
}

void step_matrix(const at::Tensor& parameter, const MuonOptions& options, MuonParamState& state) {
  const at::Tensor& gradient = parameter.grad();
  if (!state.momentum_buffer().defined()) state.momentum_buffer(at::zeros_like(gradient));
  const at::Tensor& mean = state.momentum_buffer().lerp_(gradient, 1 - options.momentum());
  const at::Tensor update = options.nesterov() ? gradient.lerp(mean, options.momentum()) : mean;
  parameter.mul_(1 - options.lr() * options.weight_decay());
  parameter.add_(orthogonalized(update, options), -adjusted_rate(options, parameter));
}

}  // namespace

Muon::Muon(const std::vector<torch::optim::OptimizerParamGroup>& groups, const MuonOptions& defaults)
    : CustomOptimizer(groups, std::make_unique<MuonOptions>(defaults)) {
  for (const auto& group : param_groups_) {
    for (const at::Tensor& parameter : group.params()) {
      if (parameter.dim() == 2) continue;
      throw Error(
          {.what = fmt::format("a parameter is [{}], not a matrix", fmt::join(parameter.sizes(), ", ")),
           .where = "Muon",
           .hint = "give it to another optimizer, such as AdamW"});
    }
  }
}

at::Tensor Muon::step(LossClosure closure) {
  const at::Tensor loss = closure ? closure() : at::Tensor();
  const at::NoGradGuard no_grad;
  for (auto& group : param_groups_) {
    const auto& options = static_cast<const MuonOptions&>(group.options());
    for (const at::Tensor& parameter : group.params())
      if (parameter.grad().defined()) step_matrix(parameter, options, state_of(parameter));
  }
  return loss;
}

MuonParamState& Muon::state_of(const at::Tensor& parameter) {
  if (parameter.grad().is_sparse())
    throw Error({.what = "does not take sparse gradients", .where = "Muon", .hint = "SGD and Adagrad do"});
  auto& state = state_[parameter.unsafeGetTensorImpl()];
  if (!state) state = std::make_unique<MuonParamState>();
  return static_cast<MuonParamState&>(*state);
}

}  // namespace acc
