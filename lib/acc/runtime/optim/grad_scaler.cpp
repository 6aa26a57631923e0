// SPDX-License-Identifier: Apache-2.0
#include "acc/runtime/optim/grad_scaler.hpp"

#include <ATen/TensorOperators.h>
#include <ATen/core/grad_mode.h>
#include <ATen/ops/_amp_foreach_non_finite_check_and_unscale.h>
#include <ATen/ops/_amp_update_scale.h>
#include <ATen/ops/full.h>
#include <torch/optim/optimizer.h>

#include <algorithm>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "acc/base/error.hpp"
#include "acc/runtime/optim/fused_step.hpp"

namespace acc {
namespace {

[[noreturn]] void refuse(std::string what, std::string hint = {}) {
  throw Error({.what = std::move(what), .where = "GradScaler", .hint = std::move(hint)});
}

// Gradients of one device and type, which a single call unscales.
struct Gradients {
  at::Device device;
  at::ScalarType type;
  std::vector<at::Tensor> tensors = {};
};

std::vector<Gradients> gradients_of(torch::optim::Optimizer& optimizer) {
  std::vector<Gradients> result;
  for (auto& group : optimizer.param_groups()) {
    for (const at::Tensor& parameter : group.params()) {
      if (!parameter.grad().defined()) continue;
      const at::Tensor values = parameter.grad().is_sparse() ? parameter.grad()._values() : parameter.grad();
      if (values.scalar_type() == at::kHalf) {
        refuse("the gradients are fp16",
               "keep the model's parameters in float32; the forward pass runs in fp16");
      }
      const auto is_same_kind = [&](const Gradients& gradients) {
        return gradients.device == values.device() && gradients.type == values.scalar_type();
      };
      auto match = std::ranges::find_if(result, is_same_kind);
      if (match == result.end()) {
        match = result.insert(result.end(), {.device = values.device(), .type = values.scalar_type()});
      }
      match->tensors.push_back(values);
    }
  }
  return result;
}

}  // namespace

namespace {

// Tells whether a parameter has got another gradient, or the same one was changed.
struct GradientVersion {
  at::Tensor gradient = {};
  std::uint32_t version = 0;

  bool operator==(const GradientVersion& other) const {
    return gradient.is_same(other.gradient) && version == other.version;
  }
};

// Does not keep the parameter alive.
using WeakParameter = c10::weak_intrusive_ptr<c10::TensorImpl, c10::UndefinedTensorImpl>;

std::vector<WeakParameter> weak_parameters(const torch::optim::Optimizer& optimizer) {
  std::vector<WeakParameter> parameters;
  for (const auto& group : optimizer.param_groups())
    for (const at::Tensor& parameter : group.params()) parameters.emplace_back(parameter.getIntrusivePtr());
  return parameters;
}

// Without those of parameters that no longer exist.
std::vector<GradientVersion> versions_of(const std::vector<WeakParameter>& parameters) {
  std::vector<GradientVersion> versions;
  for (const WeakParameter& weak : parameters) {
    const auto living = weak.lock();
    if (!living) continue;
    const at::Tensor gradient = at::Tensor(living).grad();
    versions.push_back({.gradient = gradient,
                        .version = gradient.defined() ? static_cast<std::uint32_t>(gradient._version()) : 0});
  }
  return versions;
}

}  // namespace

struct GradScaler::Impl {
  // What has been done with an optimizer's gradients since the last update.
  struct Check {
    // Whose gradients were unscaled. The optimizer itself may no longer exist, and another be at its address.
    std::vector<WeakParameter> parameters = {};
    std::vector<at::Tensor> found_inf = {};
    bool stepped = false;
    // When the last loss was scaled, while it had not stepped.
    std::vector<GradientVersion> before_backward = {};
  };

  GradScalerOptions options = {};
  GradScalerState begin = {};
  // Undefined until the first loss, which determines the device.
  at::Tensor scale = {};
  at::Tensor growth_tracker = {};
  // 1 / scale at the time when the last loss was scaled.
  at::Tensor inverse = {};
  bool inverse_is_old = true;
  std::map<const torch::optim::Optimizer*, Check> checks = {};

  void allocate_on(at::Device device) {
    if (scale.defined()) return;
    scale = at::full({}, begin.scale, at::TensorOptions(device).dtype(at::kFloat));
    growth_tracker = at::full({}, begin.growth_tracker, at::TensorOptions(device).dtype(at::kInt));
  }
};

GradScaler::GradScaler(GradScalerOptions options) : impl_(std::make_unique<Impl>()) {
  impl_->options = options;
  if (options.growth_factor <= 1) refuse("growth_factor must be above 1");
  if (options.backoff_factor >= 1) refuse("backoff_factor must be below 1");
  impl_->begin = {.scale = options.init_scale,
                  .growth_factor = options.growth_factor,
                  .backoff_factor = options.backoff_factor,
                  .growth_interval = options.growth_interval,
                  .growth_tracker = 0};
}

GradScaler::~GradScaler() = default;

bool GradScaler::is_enabled() const {
  return impl_->options.enabled;
}

at::Tensor GradScaler::scale(const at::Tensor& loss) {
  if (!is_enabled()) return loss;
  impl_->allocate_on(loss.device());
  if (std::exchange(impl_->inverse_is_old, false)) {
    // Computes in double, as Python does, so that the last digit is the same.
    impl_->inverse = impl_->scale.to(at::kDouble).reciprocal().to(at::kFloat);
  }
  for (auto& [optimizer, check] : impl_->checks) {
    if (!check.stepped) check.before_backward = versions_of(check.parameters);
  }
  return loss * impl_->scale.to(loss.device(), /*dtype=*/at::kFloat, /*non_blocking=*/true);
}

void GradScaler::after_backward() {
  std::erase_if(impl_->checks, [](const auto& entry) {
    const auto& [optimizer, check] = entry;
    return !check.stepped && check.before_backward != versions_of(check.parameters);
  });
  for (auto& [optimizer, check] : impl_->checks) check.before_backward.clear();
}

bool GradScaler::is_unscaled(const torch::optim::Optimizer& optimizer) const {
  const auto found = impl_->checks.find(&optimizer);
  if (found == impl_->checks.end()) return false;
  // Groups may have been added since.
  const std::vector<WeakParameter>& unscaled = found->second.parameters;
  return std::ranges::mismatch(unscaled, weak_parameters(optimizer)).in1 == unscaled.end();
}

void GradScaler::unscale(torch::optim::Optimizer& optimizer) {
  if (!is_enabled()) return;
  if (is_unscaled(optimizer))
    refuse("the optimizer's gradients have already been unscaled since the last update");
  if (!impl_->inverse.defined())
    refuse("no loss has been scaled yet", "call accelerator.backward(loss) first");
  const at::NoGradGuard no_grad;
  std::vector<Gradients> gradients = gradients_of(optimizer);
  if (gradients.empty()) return;
  Impl::Check& check = impl_->checks[&optimizer] = {.parameters = weak_parameters(optimizer)};
  for (Gradients& same : gradients) {
    at::Tensor found = at::full({}, 0, at::TensorOptions(same.device).dtype(at::kFloat));
    at::_amp_foreach_non_finite_check_and_unscale_(same.tensors, found, impl_->inverse.to(same.device));
    check.found_inf.push_back(found.to(impl_->scale.device()));
  }
}

bool GradScaler::step(torch::optim::Optimizer& optimizer) {
  if (!is_enabled()) {
    detail::step_quickly(optimizer);
    return true;
  }
  if (!is_unscaled(optimizer)) unscale(optimizer);
  if (!is_unscaled(optimizer))
    refuse("the optimizer's parameters have no gradients", "call accelerator.backward(loss) before its step");
  Impl::Check& check = impl_->checks[&optimizer];
  if (check.stepped) refuse("the optimizer has already stepped since the last update");
  const bool steps =
      std::ranges::none_of(check.found_inf, [](const at::Tensor& found) { return found.item<float>() != 0; });
  if (steps) detail::step_quickly(optimizer);
  check.stepped = true;  // not if the step threw
  return steps;
}

void GradScaler::update() {
  if (!is_enabled()) return;
  at::Tensor total_inf;
  for (const auto& [optimizer, check] : impl_->checks) {
    if (!check.stepped) continue;
    for (const at::Tensor& one : check.found_inf) total_inf = total_inf.defined() ? total_inf + one : one;
  }
  if (!total_inf.defined()) refuse("no optimizer has stepped since the last update");
  at::_amp_update_scale_(impl_->scale, impl_->growth_tracker, total_inf, impl_->begin.growth_factor,
                         impl_->begin.backoff_factor, impl_->begin.growth_interval);
  impl_->inverse_is_old = true;
  // Optimizers whose gradients were unscaled, but which have not stepped, are kept.
  std::erase_if(impl_->checks, [](const auto& entry) { return entry.second.stepped; });
}

double GradScaler::get_scale() const {
  if (!is_enabled()) return 1;
  return impl_->scale.defined() ? static_cast<double>(impl_->scale.item<float>()) : impl_->begin.scale;
}

GradScalerState GradScaler::state() const {
  GradScalerState state = impl_->begin;
  state.scale = get_scale();
  if (impl_->growth_tracker.defined()) state.growth_tracker = impl_->growth_tracker.item<int>();
  return state;
}

void GradScaler::load_state(const GradScalerState& state) {
  impl_->begin = state;
  impl_->inverse_is_old = true;
  impl_->checks.clear();
  if (!impl_->scale.defined()) return;
  impl_->scale.fill_(state.scale);
  impl_->growth_tracker.fill_(state.growth_tracker);
}

}  // namespace acc
