// SPDX-License-Identifier: Apache-2.0
#include "acc/runtime/optim/fused_step.hpp"

#include <ATen/core/grad_mode.h>
#include <ATen/ops/_fused_adam.h>
#include <ATen/ops/_fused_adamw.h>
#include <ATen/ops/_fused_sgd.h>
#include <ATen/ops/empty_like.h>
#include <ATen/ops/full.h>
#include <ATen/ops/zeros_like.h>
#include <torch/optim/adam.h>
#include <torch/optim/adamw.h>
#include <torch/optim/optimizer.h>
#include <torch/optim/sgd.h>

#include <algorithm>
#include <array>
#include <memory>
#include <tuple>
#include <typeinfo>
#include <vector>

namespace acc::detail {
namespace {

using namespace torch::optim;

using Native = torch::optim::Optimizer;
using Tensors = std::vector<at::Tensor>;

bool is_on_cuda(const Native& optimizer) {
  return std::ranges::all_of(optimizer.param_groups(), [](const OptimizerParamGroup& group) {
    return std::ranges::all_of(group.params(), [](const at::Tensor& one) { return one.is_cuda(); });
  });
}

template <class State>
State* find_state(Native& optimizer, const at::Tensor& parameter) {
  const auto entry = optimizer.state().find(parameter.unsafeGetTensorImpl());
  return entry == optimizer.state().end() ? nullptr : static_cast<State*>(entry->second.get());
}

template <class State>
State& add_state(Native& optimizer, const at::Tensor& parameter) {
  auto made = std::make_unique<State>();
  State& state = *made;
  optimizer.state()[parameter.unsafeGetTensorImpl()] = std::move(made);
  return state;
}

std::array<at::Tensor, 1> tensors_of(const SGDParamState& state) {
  return {state.momentum_buffer()};
}

template <class State>
std::array<at::Tensor, 3> tensors_of(const State& state) {
  return {state.exp_avg(), state.exp_avg_sq(), state.max_exp_avg_sq()};
}

// The kernels walk through the memory of all tensors of a parameter in the same order.
bool is_alike(const at::Tensor& parameter, const at::Tensor& other) {
  return other.layout() == at::kStrided && other.device() == parameter.device() &&
         other.scalar_type() == parameter.scalar_type() && other.sizes() == parameter.sizes() &&
         other.strides() == parameter.strides();
}

template <class State>
bool can_fuse(Native& optimizer, const at::Tensor& parameter) {
  if (parameter.layout() != at::kStrided || !parameter.is_floating_point() ||
      !parameter.is_non_overlapping_and_dense() || !is_alike(parameter, parameter.grad()))
    return false;
  const State* state = find_state<State>(optimizer, parameter);
  if (state == nullptr) return true;
  return std::ranges::all_of(tensors_of(*state), [&](const at::Tensor& tensor) {
    return !tensor.defined() || is_alike(parameter, tensor);
  });
}

template <class State>
bool can_fuse_all(Native& optimizer) {
  return std::ranges::all_of(optimizer.param_groups(), [&](const OptimizerParamGroup& group) {
    return std::ranges::all_of(group.params(), [&](const at::Tensor& parameter) {
      return !parameter.grad().defined() || can_fuse<State>(optimizer, parameter);
    });
  });
}

// What one call of a kernel updates.
struct Batch {
  at::Device device;
  at::ScalarType type;
  std::int64_t step;  // that is due, 1 first; only the optimizers that count steps tell later ones apart
  Tensors parameters = {};
  Tensors gradients = {};
  std::array<Tensors, 3> state = {};
};

class Batches {
 public:
  Batch& batch_of(const at::Tensor& parameter, std::int64_t step) {
    const auto key = [](const Batch& batch) { return std::tuple(batch.device, batch.type, batch.step); };
    const Batch target{.device = parameter.device(), .type = parameter.scalar_type(), .step = step};
    auto match =
        std::ranges::find_if(batches_, [&](const Batch& candidate) { return key(candidate) == key(target); });
    if (match == batches_.end()) match = batches_.insert(match, target);
    // As in LibTorch's own step, the graph does not notice that the parameter changes.
    match->parameters.push_back(parameter.variable_data());
    match->gradients.push_back(parameter.grad().variable_data());
    return *match;
  }

  auto begin() { return batches_.begin(); }
  auto end() { return batches_.end(); }

 private:
  std::vector<Batch> batches_ = {};
};

void step_group(SGD& optimizer, OptimizerParamGroup& group) {
  const auto& options = static_cast<const SGDOptions&>(group.options());
  const bool has_momentum = options.momentum() != 0;
  Batches batches;
  for (const at::Tensor& parameter : group.params()) {
    if (!parameter.grad().defined()) continue;
    auto* state = has_momentum ? find_state<SGDParamState>(optimizer, parameter) : nullptr;
    const bool is_first = state == nullptr || !state->momentum_buffer().defined();
    Batch& batch = batches.batch_of(parameter, has_momentum && !is_first ? 2 : 1);
    if (!has_momentum) continue;
    if (state == nullptr) state = &add_state<SGDParamState>(optimizer, parameter);
    if (is_first) state->momentum_buffer(at::empty_like(parameter));
    batch.state[0].push_back(state->momentum_buffer());
  }
  for (Batch& batch : batches)
    at::_fused_sgd_(batch.parameters, batch.gradients, batch.state[0], options.weight_decay(),
                    options.momentum(), options.lr(), options.dampening(), options.nesterov(),
                    /*maximize=*/false, /*is_first_step=*/has_momentum && batch.step == 1);
}

template <class State>
State& adam_state(Native& optimizer, const at::Tensor& parameter, bool amsgrad) {
  auto* state = find_state<State>(optimizer, parameter);
  if (state == nullptr) {
    state = &add_state<State>(optimizer, parameter);
    state->exp_avg(at::zeros_like(parameter));
    state->exp_avg_sq(at::zeros_like(parameter));
    if (amsgrad) state->max_exp_avg_sq(at::zeros_like(parameter));
  }
  return *state;
}

template <class Options, class State, class Kernel>
void step_adam_group(Native& optimizer, OptimizerParamGroup& group, Kernel kernel) {
  const auto& options = static_cast<const Options&>(group.options());
  Batches batches;
  for (const at::Tensor& parameter : group.params()) {
    if (!parameter.grad().defined()) continue;
    auto& state = adam_state<State>(optimizer, parameter, options.amsgrad());
    state.step(state.step() + 1);
    Batch& batch = batches.batch_of(parameter, state.step());
    batch.state[0].push_back(state.exp_avg());
    batch.state[1].push_back(state.exp_avg_sq());
    if (options.amsgrad()) batch.state[2].push_back(state.max_exp_avg_sq());
  }
  const auto [beta1, beta2] = options.betas();
  for (Batch& batch : batches) {
    // The kernels read the number of the step on the device, one for each parameter.
    const Tensors steps(batch.parameters.size(), at::full({}, static_cast<double>(batch.step),
                                                          at::TensorOptions(batch.device).dtype(at::kFloat)));
    kernel(batch.parameters, batch.gradients, batch.state[0], batch.state[1], batch.state[2], steps,
           options.lr(), beta1, beta2, options.weight_decay(), options.eps(), options.amsgrad(),
           /*maximize=*/false, {}, {});
  }
}

void step_group(Adam& optimizer, OptimizerParamGroup& group) {
  step_adam_group<AdamOptions, AdamParamState>(optimizer, group, at::_ops::_fused_adam_::call);
}

void step_group(AdamW& optimizer, OptimizerParamGroup& group) {
  step_adam_group<AdamWOptions, AdamWParamState>(optimizer, group, at::_ops::_fused_adamw_::call);
}

// Of a derived class, step may do something else.
template <class Known, class State>
bool step_known(Native& optimizer) {
  if (typeid(optimizer) != typeid(Known) || !can_fuse_all<State>(optimizer)) return false;
  for (OptimizerParamGroup& group : optimizer.param_groups())
    step_group(static_cast<Known&>(optimizer), group);
  return true;
}

}  // namespace

bool step_fused(Native& optimizer) {
  const at::NoGradGuard no_grad;
  return step_known<SGD, SGDParamState>(optimizer) || step_known<Adam, AdamParamState>(optimizer) ||
         step_known<AdamW, AdamWParamState>(optimizer);
}

at::Tensor step_quickly(Native& optimizer, const std::function<at::Tensor()>& closure) {
  if (!closure && is_on_cuda(optimizer) && step_fused(optimizer)) return {};
  return optimizer.step(closure);
}

}  // namespace acc::detail
