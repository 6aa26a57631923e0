// SPDX-License-Identifier: Apache-2.0
#include "acc/runtime/optim/optimizer_device.hpp"

#include <torch/optim/adagrad.h>
#include <torch/optim/adam.h>
#include <torch/optim/adamw.h>
#include <torch/optim/lbfgs.h>
#include <torch/optim/rmsprop.h>
#include <torch/optim/sgd.h>

namespace acc {
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

void move_optimizer_state(torch::optim::Optimizer& optimizer, c10::Device device) {
  for (auto& [parameter, state] : optimizer.state()) {
    move_known<SGDParamState, AdamParamState, AdamWParamState, AdagradParamState, RMSpropParamState,
               LBFGSParamState>(*state, {device});
  }
}

}  // namespace acc
