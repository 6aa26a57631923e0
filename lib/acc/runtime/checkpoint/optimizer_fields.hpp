// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <torch/optim/adagrad.h>
#include <torch/optim/adam.h>
#include <torch/optim/adamw.h>
#include <torch/optim/lbfgs.h>
#include <torch/optim/rmsprop.h>
#include <torch/optim/sgd.h>

#include <concepts>
#include <cstdint>
#include <type_traits>

#include "acc/runtime/optim/adafactor.hpp"
#include "acc/runtime/optim/muon.hpp"

namespace acc::detail {

/// T or const T.
template <class Given, class T>
concept Like = std::same_as<std::remove_const_t<Given>, T>;

/// A field that may be missing in a parameter's state.
template <class T>
struct Optional {
  T& value;
};

/// An integer that is an integer in Python, too. (Step counters are tensors in Python.)
template <class T>
struct Count {
  T& value;
};

/// A tensor with the elements of all parameters of a group, or a list of such; none before the first step.
template <class T>
struct Flat {
  T& value;
};

/// A tensor of one element, or a list of such; none before the first step.
template <class T>
struct Scalar {
  T& value;
};

/// A tensor of the parameter's shape without one dimension, -1 for the last; none for another shape.
template <class T>
struct Reduced {
  T& value;
  std::int64_t dimension;
};

/// Calls `visit(name, field)` for each option of a parameter group, or for each field of a parameter's state,
/// with the names of Python's optimizers.
template <Like<torch::optim::SGDOptions> Options, class Visit>
void visit_fields(Options& options, Visit visit) {
  visit("lr", options.lr());
  visit("momentum", options.momentum());
  visit("dampening", options.dampening());
  visit("weight_decay", options.weight_decay());
  visit("nesterov", options.nesterov());
}

template <Like<torch::optim::SGDParamState> State, class Visit>
void visit_fields(State& state, Visit visit) {
  visit("momentum_buffer", Optional{state.momentum_buffer()});
}

template <class Options, class Visit>
  requires Like<Options, torch::optim::AdamOptions> || Like<Options, torch::optim::AdamWOptions>
void visit_fields(Options& options, Visit visit) {
  visit("lr", options.lr());
  visit("betas", options.betas());
  visit("eps", options.eps());
  visit("weight_decay", options.weight_decay());
  visit("amsgrad", options.amsgrad());
}

template <class State, class Visit>
  requires Like<State, torch::optim::AdamParamState> || Like<State, torch::optim::AdamWParamState>
void visit_fields(State& state, Visit visit) {
  visit("step", state.step());
  visit("exp_avg", state.exp_avg());
  visit("exp_avg_sq", state.exp_avg_sq());
  visit("max_exp_avg_sq", Optional{state.max_exp_avg_sq()});
}

template <Like<torch::optim::AdagradOptions> Options, class Visit>
void visit_fields(Options& options, Visit visit) {
  visit("lr", options.lr());
  visit("lr_decay", options.lr_decay());
  visit("eps", options.eps());
  visit("weight_decay", options.weight_decay());
  visit("initial_accumulator_value", options.initial_accumulator_value());
}

template <Like<torch::optim::AdagradParamState> State, class Visit>
void visit_fields(State& state, Visit visit) {
  visit("step", state.step());
  visit("sum", state.sum());
}

template <Like<torch::optim::RMSpropOptions> Options, class Visit>
void visit_fields(Options& options, Visit visit) {
  visit("lr", options.lr());
  visit("momentum", options.momentum());
  visit("alpha", options.alpha());
  visit("eps", options.eps());
  visit("centered", options.centered());
  visit("weight_decay", options.weight_decay());
}

template <Like<torch::optim::RMSpropParamState> State, class Visit>
void visit_fields(State& state, Visit visit) {
  visit("step", state.step());
  visit("square_avg", state.square_avg());
  visit("momentum_buffer", Optional{state.momentum_buffer()});
  visit("grad_avg", Optional{state.grad_avg()});
}

template <Like<AdafactorOptions> Options, class Visit>
void visit_fields(Options& options, Visit visit) {
  visit("lr", options.lr());
  visit("eps", options.eps());
  visit("clip_threshold", options.clip_threshold());
  visit("decay_rate", options.decay_rate());
  visit("beta1", options.beta1());
  visit("weight_decay", options.weight_decay());
}

template <Like<AdafactorParamState> State, class Visit>
void visit_fields(State& state, Visit visit) {
  visit("step", Count{state.step()});
  visit("exp_avg", Optional{state.exp_avg()});
  visit("exp_avg_sq", Optional{state.exp_avg_sq()});
  visit("exp_avg_sq_row", Reduced{state.exp_avg_sq_row(), -1});
  visit("exp_avg_sq_col", Reduced{state.exp_avg_sq_col(), -2});
  visit("RMS", Scalar{state.rms()});
}

template <Like<MuonOptions> Options, class Visit>
void visit_fields(Options& options, Visit visit) {
  visit("lr", options.lr());
  visit("weight_decay", options.weight_decay());
  visit("momentum", options.momentum());
  visit("nesterov", options.nesterov());
  visit("ns_coefficients", options.ns_coefficients());
  visit("eps", options.eps());
  visit("ns_steps", Count{options.ns_steps()});
  visit("adjust_lr_fn", options.adjust_lr_fn());
}

template <Like<MuonParamState> State, class Visit>
void visit_fields(State& state, Visit visit) {
  visit("momentum_buffer", state.momentum_buffer());
}

template <Like<torch::optim::LBFGSOptions> Options, class Visit>
void visit_fields(Options& options, Visit visit) {
  visit("lr", options.lr());
  visit("max_iter", Count{options.max_iter()});
  visit("max_eval", Count{options.max_eval()});
  visit("tolerance_grad", options.tolerance_grad());
  visit("tolerance_change", options.tolerance_change());
  visit("history_size", Count{options.history_size()});
  visit("line_search_fn", options.line_search_fn());
}

// The field `al` is left out: it is scratch memory.
template <Like<torch::optim::LBFGSParamState> State, class Visit>
void visit_fields(State& state, Visit visit) {
  visit("func_evals", Count{state.func_evals()});
  visit("n_iter", Count{state.n_iter()});
  visit("t", Optional{state.t()});
  visit("prev_loss", Optional{state.prev_loss()});
  visit("d", Flat{state.d()});
  visit("prev_flat_grad", Flat{state.prev_flat_grad()});
  visit("old_dirs", Flat{state.old_dirs()});
  visit("old_stps", Flat{state.old_stps()});
  visit("H_diag", Scalar{state.H_diag()});
  visit("ro", Scalar{state.ro()});
}

template <class OptionsType, class StateType>
struct OptimizerKind {
  using Options = OptionsType;
  using State = StateType;
};

/// Calls `function` with the OptimizerKind of the optimizer. Returns false for a type whose state acc does
/// not know.
template <class Function>
bool with_kind(const torch::optim::Optimizer& optimizer, Function function) {
  using namespace torch::optim;
  const auto is = [&]<class Native>(std::type_identity<Native>) {
    return dynamic_cast<const Native*>(&optimizer) != nullptr;
  };
  if (is(std::type_identity<AdamW>())) {
    function(OptimizerKind<AdamWOptions, AdamWParamState>());
  } else if (is(std::type_identity<Adam>())) {
    function(OptimizerKind<AdamOptions, AdamParamState>());
  } else if (is(std::type_identity<SGD>())) {
    function(OptimizerKind<SGDOptions, SGDParamState>());
  } else if (is(std::type_identity<RMSprop>())) {
    function(OptimizerKind<RMSpropOptions, RMSpropParamState>());
  } else if (is(std::type_identity<Adagrad>())) {
    function(OptimizerKind<AdagradOptions, AdagradParamState>());
  } else if (is(std::type_identity<Adafactor>())) {
    function(OptimizerKind<AdafactorOptions, AdafactorParamState>());
  } else if (is(std::type_identity<Muon>())) {
    function(OptimizerKind<MuonOptions, MuonParamState>());
  } else if (is(std::type_identity<LBFGS>())) {
    function(OptimizerKind<LBFGSOptions, LBFGSParamState>());
  } else {
    return false;
  }
  return true;
}

}  // namespace acc::detail
