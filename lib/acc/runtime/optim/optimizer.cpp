// SPDX-License-Identifier: Apache-2.0
#include "acc/runtime/optim/optimizer.hpp"

#include <ATen/autocast_mode.h>
#include <c10/util/Type.h>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <torch/optim/adagrad.h>
#include <torch/optim/adam.h>
#include <torch/optim/adamw.h>
#include <torch/optim/lbfgs.h>
#include <torch/optim/optimizer.h>
#include <torch/optim/rmsprop.h>
#include <torch/optim/sgd.h>

#include <algorithm>
#include <cstddef>
#include <typeinfo>
#include <unordered_map>
#include <utility>

#include "acc/base/error.hpp"
#include "acc/runtime/comm/progress.hpp"
#include "acc/runtime/optim/adafactor.hpp"
#include "acc/runtime/optim/fused_step.hpp"
#include "acc/runtime/optim/grad_scaler.hpp"
#include "acc/runtime/optim/gradients.hpp"
#include "acc/runtime/optim/muon.hpp"
#include "acc/runtime/optim/sparse_gradients.hpp"
#include "acc/runtime/parallel/distributed_module.hpp"
#include "acc/runtime/sharded/sharded_gradients.hpp"

namespace acc {

namespace detail {

namespace {

std::size_t count_parameters(const torch::optim::Optimizer& optimizer) {
  std::size_t count = 0;
  for (const auto& group : optimizer.param_groups()) count += group.params().size();
  return count;
}

template <class... Optimizers>
bool is_any_of(const torch::optim::Optimizer& optimizer) {
  return ((dynamic_cast<const Optimizers*>(&optimizer) != nullptr) || ...);
}

// Python's optimizers take a complex number as two real ones. Of these, SGD alone does the same by computing
// with it as it is; the others would train it otherwise without a word.
void require_real_parameters(const torch::optim::Optimizer& optimizer) {
  using namespace torch::optim;
  if (!is_any_of<Adam, AdamW, RMSprop, Adagrad, LBFGS, Adafactor, Muon>(optimizer)) return;
  const bool has_complex = std::ranges::any_of(optimizer.param_groups(), [](const auto& group) {
    return std::ranges::any_of(group.params(), &at::Tensor::is_complex);
  });
  if (!has_complex) return;
  throw Error({.what = fmt::format("{} would train complex parameters otherwise than Python's",
                                   c10::demangle(typeid(optimizer).name())),
               .where = "optimizer step",
               .hint = "register the pairs of real numbers, at::view_as_real of the parameter, and use "
                       "at::view_as_complex of them in forward: Python's numbers; or train it by SGD"});
}

// A parameter of two groups would be stepped twice.
void require_groups_apart(const torch::optim::Optimizer& optimizer) {
  std::unordered_map<const c10::TensorImpl*, std::size_t> group_of;
  for (std::size_t number = 0; number < optimizer.param_groups().size(); ++number) {
    for (const at::Tensor& parameter : optimizer.param_groups()[number].params()) {
      const std::size_t first = group_of.try_emplace(parameter.unsafeGetTensorImpl(), number).first->second;
      if (first == number) continue;
      throw Error(
          {.what = fmt::format("a parameter of [{}] is in the groups {} and {}, which would each step it",
                               fmt::join(parameter.sizes(), ", "), first, number),
           .where = "optimizer step",
           .hint = "leave it in one of them; layers that share a weight each list it"});
    }
  }
}

}  // namespace

void StepChecks::require_prepared(const torch::optim::Optimizer& optimizer) const {
  if (options_.allow_unprepared_parameters) return;
  const auto is_prepared = [&](const at::Tensor& parameter) {
    return std::ranges::any_of(models_, [&](const auto& model) { return model->has_parameter(parameter); });
  };
  std::vector<at::Tensor> unprepared;
  for (const auto& group : optimizer.param_groups()) {
    for (const at::Tensor& parameter : group.params()) {
      if (!is_prepared(parameter)) unprepared.push_back(parameter);
    }
  }
  if (unprepared.empty()) return;
  if (any_is_sharded(unprepared)) {
    throw Error({.what = "a parameter group was added after it was prepared, and it cannot train the whole "
                         "parameters of a sharded model",
                 .where = "optimizer step",
                 .hint = "add all parameter groups before prepare"});
  }
  throw Error(
      {.what = fmt::format("{} of its {} parameters do not belong to a prepared model, so each process would "
                           "train them with its own gradients only",
                           unprepared.size(), count_parameters(optimizer)),
       .where = "optimizer step",
       .hint = "prepare the model that they belong to, with everything that is trained registered in it; "
               "AcceleratorOptions::allow_unprepared_parameters, where the program averages them itself"});
}

void StepChecks::after_backward() const {
  for (const auto& model : models_) model->after_backward(models_);
}

void StepChecks::require_gradients(const torch::optim::Optimizer& optimizer) const {
  const auto has_one = [&](DistributedModule& model) {
    return std::ranges::any_of(optimizer.param_groups(), [&](const auto& group) {
      return std::ranges::any_of(group.params(), [&](const auto& one) { return model.has_parameter(one); });
    });
  };
  for (const auto& model : models_) {
    if (model->awaits_gradients() && has_one(*model)) model->require_gradients();
  }
}

void StepChecks::drop_gradients(const torch::optim::Optimizer& optimizer) const {
  for (const auto& model : models_) model->drop_gradients(optimizer);
}

void StepChecks::require_equal_parameters() const {
  for (const auto& model : models_) model->require_equal_parameters();
}

void StepChecks::after_step(std::int64_t steps) const {
  for (const auto& model : models_) model->after_step();
  if (options_.check_parameters_every == 0 || steps % options_.check_parameters_every != 0) return;
  if (std::ranges::all_of(models_, [](const auto& model) { return model->in_step(); }))
    require_equal_parameters();
}

}  // namespace detail

struct Optimizer::State {
  std::shared_ptr<torch::optim::Optimizer> native = {};
  std::shared_ptr<const GradientState> gradients = {};
  std::shared_ptr<GradScaler> scaler = {};
  std::shared_ptr<const detail::StepChecks> checks = {};
  std::int64_t steps = 0;
  std::unique_ptr<const detail::OptimizerSteps> progress = std::make_unique<detail::OptimizerSteps>();
  // How many parameters it had when they were checked: groups may be added between steps.
  std::size_t checked = 0;
  bool step_was_skipped = false;

  void check_new_parameters();
  at::Tensor step(const Closure& closure);
  at::Tensor checked_step(const Closure& closure);
};

Optimizer::Optimizer(std::shared_ptr<torch::optim::Optimizer> native)
    : Optimizer(std::move(native), std::make_shared<GradientState>(), nullptr) {}

Optimizer::Optimizer(std::shared_ptr<torch::optim::Optimizer> native,
                     std::shared_ptr<const GradientState> gradients, std::shared_ptr<GradScaler> scaler,
                     std::shared_ptr<const detail::StepChecks> checks)
    : state_(std::make_shared<State>(State{.native = std::move(native),
                                           .gradients = std::move(gradients),
                                           .scaler = std::move(scaler),
                                           .checks = std::move(checks)})) {}

at::Tensor Optimizer::State::step(const Closure& closure) {
  if (!scaler) return detail::step_quickly(*native, closure);
  if (closure) {
    throw Error({.what = "a closure cannot be used in fp16, where gradients are scaled",
                 .where = "optimizer step",
                 .hint = "use bf16, or step without a closure"});
  }
  step_was_skipped = !scaler->step(*native);
  scaler->update();
  return {};
}

void Optimizer::State::check_new_parameters() {
  const std::size_t parameters = detail::count_parameters(*native);
  if (parameters == checked) return;
  detail::require_real_parameters(*native);
  detail::require_groups_apart(*native);
  if (checks) checks->require_prepared(*native);
  checked = parameters;
}

at::Tensor Optimizer::State::checked_step(const Closure& closure) {
  checks->after_backward();
  checks->require_gradients(*native);
  at::Tensor loss = step(closure);
  checks->after_step(steps + 1);
  return loss;
}

at::Tensor Optimizer::step(const Closure& closure) {
  if (!state_->gradients->sync_gradients()) return {};
  const ProgressSection section(Section::optimizer);
  state_->check_new_parameters();
  detail::require_sparse_gradients_taken(*state_->native);
  detail::match_momentum_of_sparse_gradients(*state_->native);
  // An Autocast around the loop keeps converted weights: LBFGS changes them between its closures, too.
  const Closure computed_anew = [&closure] {
    at::autocast::clear_cache();
    return closure();
  };
  const Closure used = closure ? computed_anew : closure;
  at::Tensor loss = state_->checks ? state_->checked_step(used) : state_->step(used);
  at::autocast::clear_cache();
  ++state_->steps;
  state_->progress->report();
  return loss;
}

void Optimizer::zero_grad() {
  if (!state_->gradients->sync_gradients()) return;
  if (state_->checks) state_->checks->drop_gradients(*state_->native);
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

namespace {

using namespace torch::optim;

struct Mover {
  c10::Device device;

  void operator()(at::Tensor& tensor) const {
    if (tensor.defined()) tensor = tensor.to(device);
  }
  template <class Tensors>
  void all(Tensors& tensors) const {
    for (at::Tensor& tensor : tensors) (*this)(tensor);
  }

  void state(SGDParamState& state) const { (*this)(state.momentum_buffer()); }
  void state(AdagradParamState& state) const { (*this)(state.sum()); }
  void state(RMSpropParamState& state) const {
    (*this)(state.square_avg());
    (*this)(state.momentum_buffer());
    (*this)(state.grad_avg());
  }
  template <class Adams>
    requires std::same_as<Adams, AdamParamState> || std::same_as<Adams, AdamWParamState>
  void state(Adams& state) const {
    (*this)(state.exp_avg());
    (*this)(state.exp_avg_sq());
    (*this)(state.max_exp_avg_sq());
  }
  void state(LBFGSParamState& state) const {
    (*this)(state.d());
    (*this)(state.H_diag());
    (*this)(state.prev_flat_grad());
    all(state.old_dirs());
    all(state.old_stps());
    all(state.ro());
    if (state.al()) all(*state.al());
  }
};

template <class... States>
void move_known(OptimizerParamState& state, const Mover& mover) {
  const auto move = [&](auto* known) {
    if (known != nullptr) mover.state(*known);
  };
  (move(dynamic_cast<States*>(&state)), ...);
}

}  // namespace

namespace detail {

void move_optimizer_state(torch::optim::Optimizer& optimizer, c10::Device device) {
  for (auto& [parameter, state] : optimizer.state()) {
    move_known<SGDParamState, AdamParamState, AdamWParamState, AdagradParamState, RMSpropParamState,
               LBFGSParamState>(*state, {device});
  }
}

}  // namespace detail

}  // namespace acc
