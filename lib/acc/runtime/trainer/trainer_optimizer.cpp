// SPDX-License-Identifier: Apache-2.0
#include "acc/runtime/trainer/trainer_optimizer.hpp"

#include <torch/nn/module.h>
#include <torch/nn/modules/normalization.h>
#include <torch/optim/adagrad.h>
#include <torch/optim/adamw.h>
#include <torch/optim/rmsprop.h>
#include <torch/optim/sgd.h>

#include <regex>
#include <type_traits>
#include <unordered_set>
#include <utility>
#include <vector>

#include "acc/base/error.hpp"
#include "acc/runtime/optim/adafactor.hpp"
#include "acc/runtime/trainer/named_options.hpp"

namespace acc::detail {
namespace {

// The parameters to which weight decay is not applied: those of LayerNorm modules, biases, and those whose
// name contains the name of a norm.
std::unordered_set<const at::TensorImpl*> parameters_without_decay(const torch::nn::Module& module) {
  static const std::regex names(R"(bias|layernorm|rmsnorm|(^|\.)norm($|\.)|_norm($|\.))", std::regex::icase);
  std::unordered_set<const at::TensorImpl*> parameters;
  for (const auto& part : module.modules()) {
    if (!part->as<torch::nn::LayerNorm>()) continue;
    for (const at::Tensor& parameter : part->parameters(false))
      parameters.insert(parameter.unsafeGetTensorImpl());
  }
  for (const auto& parameter : module.named_parameters())
    if (std::regex_search(parameter.key(), names)) parameters.insert(parameter.value().unsafeGetTensorImpl());
  return parameters;
}

torch::optim::SGDOptions sgd_options(double rate, NamedOptions& numbers) {
  const double momentum = numbers.take("momentum", 0, Range::not_negative);
  const bool nesterov = numbers.take("nesterov", 0) != 0;
  if (nesterov && momentum == 0) throw Error({.what = "needs a momentum", .where = "optim_args: nesterov"});
  return torch::optim::SGDOptions(rate).momentum(momentum).nesterov(nesterov);
}

}  // namespace

std::shared_ptr<torch::optim::Optimizer> optimizer_of(const TrainingArguments& arguments,
                                                      const torch::nn::Module& module) {
  const auto without_decay = parameters_without_decay(module);
  std::vector<at::Tensor> decayed;
  std::vector<at::Tensor> undecayed;
  for (const at::Tensor& parameter : module.parameters()) {
    if (!parameter.requires_grad()) continue;
    (without_decay.contains(parameter.unsafeGetTensorImpl()) ? undecayed : decayed).push_back(parameter);
  }
  NamedOptions numbers = NamedOptions::parse(arguments.optim_args, "optim_args");
  const auto create = [&]<class Native, class Options>(std::type_identity<Native> /*type*/, Options options) {
    std::vector<torch::optim::OptimizerParamGroup> groups;
    const auto add_group = [&](const std::vector<at::Tensor>& parameters, double weight_decay) {
      if (parameters.empty()) return;
      auto group_options = std::make_unique<Options>(options);
      group_options->weight_decay(weight_decay);
      groups.emplace_back(parameters, std::move(group_options));
    };
    add_group(decayed, arguments.weight_decay);
    add_group(undecayed, 0);
    numbers.require_empty();
    return std::shared_ptr<torch::optim::Optimizer>(std::make_shared<Native>(std::move(groups), options));
  };
  const double rate = arguments.learning_rate;
  switch (arguments.optim) {
    case OptimizerName::adamw_torch:
      return create(std::type_identity<torch::optim::AdamW>(),
                    torch::optim::AdamWOptions(rate)
                        .betas({arguments.adam_beta1, arguments.adam_beta2})
                        .eps(arguments.adam_epsilon));
    case OptimizerName::sgd:
      return create(std::type_identity<torch::optim::SGD>(), sgd_options(rate, numbers));
    case OptimizerName::adagrad:
      return create(std::type_identity<torch::optim::Adagrad>(), torch::optim::AdagradOptions(rate));
    case OptimizerName::rmsprop:
      return create(std::type_identity<torch::optim::RMSprop>(),
                    torch::optim::RMSpropOptions(rate)
                        .momentum(numbers.take("momentum", 0, Range::not_negative))
                        .alpha(numbers.take("alpha", 0.99, Range::not_negative)));
    case OptimizerName::adafactor:
      return create(std::type_identity<Adafactor>(), AdafactorOptions(rate));
  }
  throw Error({.what = "is not an optimizer", .where = "optim"});
}

}  // namespace acc::detail
