// SPDX-License-Identifier: Apache-2.0
#include "acc/runtime/checkpoint/process_states.hpp"

#include <ATen/core/Tensor.h>
#include <c10/util/Exception.h>
#include <fmt/format.h>
#include <torch/nn/module.h>

#include <string>
#include <unordered_set>
#include <utility>

#include "acc/base/error.hpp"
#include "acc/runtime/sharded/unit.hpp"
#include "acc/runtime/tensors/random.hpp"

namespace acc::detail {
namespace {

constexpr std::uint32_t kTwisterWords = 624;

// The state of MT19937 after init_genrand(seed): the generator of Python's random and of numpy.
PtList seeded_twister(std::uint32_t seed) {
  PtList words;
  std::uint32_t word = seed;
  for (std::uint32_t i = 1; i <= kTwisterWords; ++i) {
    words.emplace_back(std::int64_t{word});
    word = 1812433253U * (word ^ (word >> 30U)) + i;
  }
  return words;
}

// accelerate writes this key only if there is a device.
constexpr const char* kOfCudaDevices = "torch_cuda_manual_seed";

std::vector<at::Tensor> tensors_of(const PtValue& value) {
  std::vector<at::Tensor> tensors;
  const auto* list = value.get_if<PtList>();
  if (list == nullptr) return tensors;
  for (const PtValue& item : *list) {
    if (const auto* tensor = item.get_if<at::Tensor>()) tensors.push_back(*tensor);
  }
  return tensors;
}

}  // namespace

PtValue random_states(std::int64_t step) {
  const PtList words = seeded_twister(static_cast<std::uint32_t>(default_seed()));
  PtTuple of_python{words};
  of_python.items.emplace_back(std::int64_t{kTwisterWords});
  const auto position = std::int64_t{kTwisterWords};
  PtDict states{{"step", step},
                {"random_state", PtTuple{{3, of_python, {}}}},
                {"numpy_random_seed", PtTuple{{"MT19937", PtTuple{words}, position, 0, 0.0}}},
                {"torch_manual_seed", random_state()}};
  PtList of_devices;
  for (at::Tensor& state : cuda_random_states()) of_devices.emplace_back(std::move(state));
  if (!of_devices.empty()) states.push_back({kOfCudaDevices, std::move(of_devices)});
  return states;
}

std::optional<std::int64_t> load_random_states(const PtValue& states, const std::string& where) {
  const PtValue* generator = states.find("torch_manual_seed");
  const auto* bytes = generator != nullptr ? generator->get_if<at::Tensor>() : nullptr;
  const PtValue* of_devices = states.find(kOfCudaDevices);
  try {
    if (bytes != nullptr) set_random_state(*bytes);
    if (of_devices != nullptr) set_cuda_random_states(tensors_of(*of_devices));
  } catch (const c10::Error&) {
    bytes = nullptr;
  }
  if (bytes == nullptr)
    throw Error({.kind = ErrorKind::config,
                 .what = "does not contain the state of LibTorch's generator",
                 .where = where});
  const PtValue* step = states.find("step");
  const auto number = step != nullptr ? step->number() : std::nullopt;
  if (!number) return {};
  return static_cast<std::int64_t>(*number);
}

namespace {

using Loads = std::vector<std::pair<at::Tensor, at::Tensor>>;

[[noreturn]] void refuse_gradients(const std::string& what) {
  throw Error({.kind = ErrorKind::config, .what = what, .where = "accumulated gradients"});
}

void plan_model(torch::nn::Module& model, const PtValue& state, Loads& loads) {
  const auto* gradients = state.get_if<PtDict>();
  if (gradients == nullptr) refuse_gradients("have no dict for a model");
  const auto parameters = model.named_parameters();
  for (const PtEntry& entry : *gradients) {
    const auto* name = entry.key.get_if<std::string>();
    const auto* gradient = entry.value.get_if<at::Tensor>();
    if (name == nullptr || gradient == nullptr)
      refuse_gradients("contain something other than tensors by name");
    const at::Tensor* parameter = parameters.find(*name);
    if (parameter == nullptr) refuse_gradients(fmt::format("the model has no parameter '{}'", *name));
    if (unit_of(*parameter) != nullptr)
      refuse_gradients(
          "belong to a whole model, and this one is sharded: load a checkpoint of a finished step");
    if (parameter->sizes() != gradient->sizes())
      refuse_gradients(fmt::format("the gradient of '{}' has another shape", *name));
    loads.emplace_back(*parameter, *gradient);
  }
}

void add(const at::Tensor& parameter, const at::Tensor& gradient, double scale) {
  const at::Tensor converted =
      gradient.to(parameter.device(), parameter.scalar_type(), /*non_blocking=*/false, /*copy=*/true);
  const at::Tensor scaled = scale == 1 ? converted : converted.mul_(scale);
  at::Tensor& target = parameter.mutable_grad();
  if (target.defined()) {
    target.add_(scaled);
  } else {
    target = scaled;
  }
}

}  // namespace

PtValue gradients_of(const std::vector<torch::nn::Module*>& models) {
  PtList result;
  for (const torch::nn::Module* model : models) {
    PtDict gradients;
    std::unordered_set<const c10::TensorImpl*> visited;
    for (const auto& item : model->named_parameters()) {
      const bool tied = !visited.insert(item.value().unsafeGetTensorImpl()).second;
      if (!item.value().grad().defined() || tied || unit_of(item.value()) != nullptr) continue;
      if (item.value().grad().is_sparse()) {
        throw Error({.what = "has a sparse gradient that is not stepped yet, which cannot be saved",
                     .where = fmt::format("parameter '{}'", item.key()),
                     .hint = "save after optimizer.step() and zero_grad()"});
      }
      gradients.push_back({item.key(), item.value().grad()});
    }
    result.emplace_back(std::move(gradients));
  }
  return result;
}

std::function<void()> plan_gradients_load(const std::vector<torch::nn::Module*>& models,
                                          const std::vector<PtValue>& parts, double scale) {
  Loads loads;
  for (const PtValue& part : parts) {
    const auto* of_models = part.get_if<PtList>();
    if (of_models == nullptr || of_models->size() != models.size())
      refuse_gradients("belong to other models");
    for (std::size_t i = 0; i < models.size(); ++i) plan_model(*models[i], (*of_models)[i], loads);
  }
  return [models, loads, scale] {
    for (torch::nn::Module* model : models) {
      for (const at::Tensor& parameter : model->parameters()) parameter.mutable_grad().reset();
    }
    for (const auto& [parameter, gradient] : loads) add(parameter, gradient, scale);
  };
}

}  // namespace acc::detail
