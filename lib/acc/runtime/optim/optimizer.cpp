// SPDX-License-Identifier: Apache-2.0
#include "acc/runtime/optim/optimizer.hpp"

#include <torch/optim/optimizer.h>

#include <utility>

#include "acc/base/error.hpp"
#include "acc/runtime/optim/gradient_state.hpp"
#include "acc/runtime/optim/step_checks.hpp"
#include "acc/runtime/precision/grad_scaler.hpp"

namespace acc {

struct Optimizer::State {
  std::shared_ptr<torch::optim::Optimizer> native = {};
  std::shared_ptr<const GradientState> gradients = {};
  std::shared_ptr<GradScaler> scaler = {};
  std::shared_ptr<const StepChecks> checks = {};
  std::int64_t steps = 0;
  bool step_was_skipped = false;

  at::Tensor step(const Closure& closure);
};

Optimizer::Optimizer(std::shared_ptr<torch::optim::Optimizer> native)
    : Optimizer(std::move(native), std::make_shared<GradientState>(), nullptr) {}

Optimizer::Optimizer(std::shared_ptr<torch::optim::Optimizer> native,
                     std::shared_ptr<const GradientState> gradients, std::shared_ptr<GradScaler> scaler,
                     std::shared_ptr<const StepChecks> checks)
    : state_(std::make_shared<State>(State{.native = std::move(native),
                                           .gradients = std::move(gradients),
                                           .scaler = std::move(scaler),
                                           .checks = std::move(checks)})) {}

at::Tensor Optimizer::State::step(const Closure& closure) {
  if (!scaler) return native->step(closure);
  if (closure) {
    throw Error({.what = "a closure cannot be used in fp16, where gradients are scaled",
                 .where = "optimizer step",
                 .hint = "use bf16, or step without a closure"});
  }
  step_was_skipped = !scaler->step(*native);
  scaler->update();
  return {};
}

at::Tensor Optimizer::step(const Closure& closure) {
  if (!state_->gradients->sync_gradients()) return {};
  if (!state_->checks) return state_->step(closure);
  if (state_->steps == 0) state_->checks->require_prepared(*state_->native);
  state_->checks->require_announced_gradients();
  at::Tensor loss = state_->step(closure);
  state_->checks->after_step(++state_->steps);
  return loss;
}

void Optimizer::zero_grad() {
  if (!state_->gradients->sync_gradients()) return;
  for (auto& group : state_->native->param_groups()) {
    for (at::Tensor& parameter : group.params()) parameter.mutable_grad().reset();
  }
}

bool Optimizer::step_was_skipped() const {
  return state_->step_was_skipped;
}
torch::optim::Optimizer& Optimizer::native() const {
  return *state_->native;
}

}  // namespace acc
