// SPDX-License-Identifier: Apache-2.0
#include "acc/runtime/optim/optimizer.hpp"

#include <torch/optim/optimizer.h>

#include <utility>

#include "acc/base/error.hpp"
#include "acc/runtime/optim/gradient_state.hpp"
#include "acc/runtime/precision/grad_scaler.hpp"

namespace acc {

struct Optimizer::State {
  std::shared_ptr<torch::optim::Optimizer> native = {};
  std::shared_ptr<const GradientState> gradients = {};
  std::shared_ptr<GradScaler> scaler = {};
  bool step_was_skipped = false;
};

Optimizer::Optimizer(std::shared_ptr<torch::optim::Optimizer> native)
    : Optimizer(std::move(native), std::make_shared<GradientState>(), nullptr) {}

Optimizer::Optimizer(std::shared_ptr<torch::optim::Optimizer> native,
                     std::shared_ptr<const GradientState> gradients, std::shared_ptr<GradScaler> scaler)
    : state_(std::make_shared<State>(State{
          .native = std::move(native), .gradients = std::move(gradients), .scaler = std::move(scaler)})) {}

at::Tensor Optimizer::step(const Closure& closure) {
  if (!state_->gradients->sync_gradients()) return {};
  if (!state_->scaler) return state_->native->step(closure);
  if (closure) {
    throw Error({.what = "a closure cannot be used in fp16, where gradients are scaled",
                 .where = "optimizer step",
                 .hint = "use bf16, or step without a closure"});
  }
  state_->step_was_skipped = !state_->scaler->step(*state_->native);
  state_->scaler->update();
  return {};
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
