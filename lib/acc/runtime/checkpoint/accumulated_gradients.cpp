// SPDX-License-Identifier: Apache-2.0
#include "acc/runtime/checkpoint/accumulated_gradients.hpp"

#include <ATen/core/Tensor.h>
#include <fmt/format.h>
#include <torch/nn/module.h>

#include <string>
#include <unordered_set>
#include <utility>

#include "acc/base/error.hpp"

namespace acc {
namespace {

using Loads = std::vector<std::pair<at::Tensor, at::Tensor>>;

[[noreturn]] void refuse(const std::string& what) {
  throw Error({.kind = ErrorKind::config, .what = what, .where = "accumulated gradients"});
}

void plan_model(torch::nn::Module& model, const PtValue& state, Loads& loads) {
  const auto* gradients = state.get_if<PtDict>();
  if (gradients == nullptr) refuse("hold no dict for a model");
  const auto parameters = model.named_parameters();
  for (const PtEntry& entry : *gradients) {
    const auto* name = entry.key.get_if<std::string>();
    const auto* gradient = entry.value.get_if<at::Tensor>();
    if (name == nullptr || gradient == nullptr) refuse("hold something else than tensors by name");
    const at::Tensor* parameter = parameters.find(*name);
    if (parameter == nullptr) refuse(fmt::format("the model has no parameter '{}'", *name));
    if (parameter->sizes() != gradient->sizes()) refuse(fmt::format("that of '{}' has another shape", *name));
    loads.emplace_back(*parameter, *gradient);
  }
}

void add(const at::Tensor& parameter, const at::Tensor& gradient, double scale) {
  const at::Tensor own =
      gradient.to(parameter.device(), parameter.scalar_type(), /*non_blocking=*/false, /*copy=*/true);
  const at::Tensor scaled = scale == 1 ? own : own.mul_(scale);
  at::Tensor& place = parameter.mutable_grad();
  if (place.defined()) {
    place.add_(scaled);
  } else {
    place = scaled;
  }
}

}  // namespace

PtValue gradients_of(const std::vector<torch::nn::Module*>& models) {
  PtList all;
  for (const torch::nn::Module* model : models) {
    PtDict gradients;
    std::unordered_set<const c10::TensorImpl*> seen;
    for (const auto& item : model->named_parameters()) {
      const bool tied = !seen.insert(item.value().unsafeGetTensorImpl()).second;
      if (item.value().grad().defined() && !tied) gradients.push_back({item.key(), item.value().grad()});
    }
    all.emplace_back(std::move(gradients));
  }
  return all;
}

std::function<void()> plan_gradients_load(const std::vector<torch::nn::Module*>& models,
                                          const std::vector<PtValue>& parts, double scale) {
  Loads loads;
  for (const PtValue& part : parts) {
    const auto* of_models = part.get_if<PtList>();
    if (of_models == nullptr || of_models->size() != models.size()) refuse("are those of other models");
    for (std::size_t i = 0; i < models.size(); ++i) plan_model(*models[i], (*of_models)[i], loads);
  }
  return [models, loads, scale] {
    for (torch::nn::Module* model : models) {
      for (const at::Tensor& parameter : model->parameters()) parameter.mutable_grad().reset();
    }
    for (const auto& [parameter, gradient] : loads) add(parameter, gradient, scale);
  };
}

}  // namespace acc
