// SPDX-License-Identifier: Apache-2.0
#include "acc/runtime/optim/adafactor.hpp"

#include <ATen/TensorOperators.h>
#include <ATen/core/grad_mode.h>
#include <ATen/ops/zeros.h>
#include <ATen/ops/zeros_like.h>

#include <cmath>
#include <memory>

#include "acc/base/error.hpp"

namespace acc {
namespace {

bool is_half(const at::Tensor& tensor) {
  return tensor.scalar_type() == at::kHalf || tensor.scalar_type() == at::kBFloat16;
}

at::Tensor in_float(const at::Tensor& tensor) {
  return is_half(tensor) ? tensor.to(at::kFloat) : tensor;
}

at::Tensor root_mean_square(const at::Tensor& tensor) {
  return tensor.norm(2) / std::sqrt(static_cast<double>(tensor.numel()));
}

bool is_factored(const at::Tensor& tensor) {
  return tensor.dim() >= 2;
}

at::Tensor zeros_without(const at::Tensor& like, std::int64_t dimension) {
  std::vector<std::int64_t> sizes = like.sizes().vec();
  sizes.erase(sizes.end() + dimension);
  return at::zeros(sizes, like.options());
}

// What a state lacks begins with zeros; its parameter may have been converted since the last step.
void complete(AdafactorParamState& state, const at::Tensor& gradient, bool has_mean) {
  const auto set = [&](at::Tensor& part, const auto& initial) {
    part = part.defined() ? part.to(gradient.options()) : initial();
  };
  if (has_mean) set(state.exp_avg(), [&] { return at::zeros_like(gradient); });
  if (is_factored(gradient)) {
    set(state.exp_avg_sq_row(), [&] { return zeros_without(gradient, -1); });
    set(state.exp_avg_sq_col(), [&] { return zeros_without(gradient, -2); });
  } else {
    set(state.exp_avg_sq(), [&] { return at::zeros_like(gradient); });
  }
}

// The gradient divided by the root of the mean of squared gradients, to which it is added.
at::Tensor normalized(const at::Tensor& gradient, const AdafactorOptions& options,
                      AdafactorParamState& state) {
  const double decay = 1 - std::pow(static_cast<double>(state.step()), options.decay_rate());
  const at::Tensor squares = gradient.square() + std::get<0>(options.eps());
  if (!is_factored(gradient)) {
    state.exp_avg_sq().mul_(decay).add_(squares, 1 - decay);
    return state.exp_avg_sq().rsqrt().mul_(gradient);
  }
  const at::Tensor& rows = state.exp_avg_sq_row().mul_(decay).add_(squares.mean(-1), 1 - decay);
  const at::Tensor& columns = state.exp_avg_sq_col().mul_(decay).add_(squares.mean(-2), 1 - decay);
  const at::Tensor row_factors = (rows / rows.mean(-1, /*keepdim=*/true)).rsqrt_().unsqueeze(-1);
  return (row_factors * columns.unsqueeze(-2).rsqrt()).mul_(gradient);
}

// The order of operations is Python's, so that the numbers are.
void step_parameter(const at::Tensor& parameter, const AdafactorOptions& options,
                    AdafactorParamState& state) {
  const at::Tensor gradient = in_float(parameter.grad());
  complete(state, gradient, options.beta1().has_value());
  const at::Tensor values = in_float(parameter);
  state.step(state.step() + 1);
  state.rms(root_mean_square(values));
  at::Tensor update = normalized(gradient, options, state);
  update.div_((root_mean_square(update) / options.clip_threshold()).clamp_(1.0)).mul_(options.lr());
  if (const auto& beta = options.beta1()) update = state.exp_avg().mul_(*beta).add_(update, 1 - *beta);
  if (options.weight_decay() != 0) values.add_(values, -options.weight_decay() * options.lr());
  values.add_(-update);
  if (is_half(parameter)) parameter.copy_(values);
}

}  // namespace

at::Tensor Adafactor::step(LossClosure closure) {
  const at::Tensor loss = closure ? closure() : at::Tensor();
  const at::NoGradGuard no_grad;
  for (auto& group : param_groups_) {
    const auto& options = static_cast<const AdafactorOptions&>(group.options());
    for (const at::Tensor& parameter : group.params())
      if (parameter.grad().defined()) step_parameter(parameter, options, state_of(parameter));
  }
  return loss;
}

AdafactorParamState& Adafactor::state_of(const at::Tensor& parameter) {
  if (parameter.grad().is_sparse())
    throw Error(
        {.what = "does not take sparse gradients", .where = "Adafactor", .hint = "SGD and Adagrad do"});
  auto& state = state_[parameter.unsafeGetTensorImpl()];
  if (!state) state = std::make_unique<AdafactorParamState>();
  return static_cast<AdafactorParamState&>(*state);
}

}  // namespace acc
