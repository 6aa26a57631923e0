// SPDX-License-Identifier: Apache-2.0
#include "acc/runtime/optim/sparse_gradients.hpp"

#include <c10/util/Type.h>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <torch/nn/module.h>
#include <torch/optim/adagrad.h>
#include <torch/optim/adam.h>
#include <torch/optim/adamw.h>
#include <torch/optim/optimizer.h>
#include <torch/optim/rmsprop.h>
#include <torch/optim/sgd.h>

#include <algorithm>
#include <optional>
#include <string>
#include <typeinfo>
#include <vector>

#include "acc/base/error.hpp"
#include "acc/runtime/optim/adafactor.hpp"
#include "acc/runtime/optim/muon.hpp"
#include "acc/runtime/parallel/parameter_agreement.hpp"

namespace acc::detail {
namespace {

using namespace torch::optim;

// A derived class may step otherwise.
template <class... Optimizers>
bool is_exactly(const torch::optim::Optimizer& optimizer) {
  return ((typeid(optimizer) == typeid(Optimizers)) || ...);
}

template <class Native, class Options>
bool decays(const torch::optim::Optimizer& optimizer, const OptimizerParamGroup& group) {
  return is_exactly<Native>(optimizer) && static_cast<const Options&>(group.options()).weight_decay() != 0;
}

// Why sparse gradients of a group cannot be stepped; empty if they can.
std::string obstacle_of(const torch::optim::Optimizer& optimizer, const OptimizerParamGroup& group) {
  if (is_exactly<Adam, AdamW, RMSprop, Adafactor, Muon>(optimizer)) return "does not step";
  if (decays<SGD, SGDOptions>(optimizer, group) || decays<Adagrad, AdagradOptions>(optimizer, group))
    return "does not step with weight_decay";
  return "";
}

// `where_of` says where a parameter with sparse gradients stands, nothing for others.
template <class WhereOf>
void require_taken(const torch::optim::Optimizer& optimizer, const WhereOf& where_of) {
  for (const OptimizerParamGroup& group : optimizer.param_groups()) {
    const std::string obstacle = obstacle_of(optimizer, group);
    if (obstacle.empty()) continue;
    for (const at::Tensor& parameter : group.params()) {
      const std::optional<std::string> where = where_of(parameter);
      if (!where) continue;
      throw Error({.what = fmt::format("has sparse gradients, which {} {}",
                                       c10::demangle(typeid(optimizer).name()), obstacle),
                   .where = *where,
                   .hint = "take SGD or Adagrad for it, without weight_decay, or make the embedding without "
                           "sparse(true)"});
    }
  }
}

}  // namespace

void require_sparse_gradients_taken(const torch::optim::Optimizer& optimizer,
                                    const torch::nn::Module& model) {
  const auto sparse = sparse_parameters(model);
  if (sparse.empty()) return;
  const std::vector<NamedParameter> parameters = distinct_parameters(model);
  require_taken(optimizer, [&](const at::Tensor& parameter) -> std::optional<std::string> {
    if (!parameter.requires_grad() || !sparse.contains(parameter.unsafeGetTensorImpl())) return std::nullopt;
    const auto named = std::ranges::find_if(
        parameters, [&](const NamedParameter& one) { return one.second.is_same(parameter); });
    if (named == parameters.end()) return std::nullopt;
    return fmt::format("parameter '{}'", named->first);
  });
}

void require_sparse_gradients_taken(const torch::optim::Optimizer& optimizer) {
  // By its shape: an optimizer does not know the names of its parameters.
  require_taken(optimizer, [](const at::Tensor& parameter) -> std::optional<std::string> {
    if (!parameter.grad().defined() || !parameter.grad().is_sparse()) return std::nullopt;
    return fmt::format("optimizer step, a parameter of [{}]", fmt::join(parameter.sizes(), ", "));
  });
}

void match_momentum_of_sparse_gradients(torch::optim::Optimizer& optimizer) {
  if (!is_exactly<SGD>(optimizer)) return;
  for (const OptimizerParamGroup& group : optimizer.param_groups()) {
    if (!static_cast<const SGDOptions&>(group.options()).nesterov()) continue;
    for (const at::Tensor& parameter : group.params()) {
      const at::Tensor& gradient = parameter.grad();
      if (!gradient.defined() || !gradient.is_sparse()) continue;
      const auto entry = optimizer.state().find(parameter.unsafeGetTensorImpl());
      if (entry == optimizer.state().end()) continue;
      at::Tensor& momentum = static_cast<SGDParamState&>(*entry->second).momentum_buffer();
      if (momentum.defined() && !momentum.is_sparse()) momentum = momentum.to_sparse(gradient.sparse_dim());
    }
  }
}

}  // namespace acc::detail
