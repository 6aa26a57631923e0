// SPDX-License-Identifier: Apache-2.0
#include "acc/runtime/checkpoint/model_file.hpp"

#include <ATen/core/grad_mode.h>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <torch/nn/module.h>

#include <vector>

#include "acc/base/error.hpp"
#include "acc/base/text.hpp"

namespace acc {
namespace {

std::vector<std::string> names_of(const NamedTensors& tensors) {
  std::vector<std::string> names;
  for (const auto& [name, tensor] : tensors) names.push_back(name);
  return names;
}

std::vector<Problem> compare(const NamedTensors& wanted, const NamedTensors& given,
                             const std::string& where) {
  std::vector<Problem> problems;
  for (const auto& [name, tensor] : wanted) {
    const auto found = given.find(name);
    if (found == given.end()) {
      problems.push_back(
          {fmt::format("has no tensor '{}'", name), where, did_you_mean(name, names_of(given))});
    } else if (found->second.sizes() != tensor.sizes()) {
      problems.push_back(
          {fmt::format("tensor '{}' is [{}], the model's is [{}]", name,
                       fmt::join(found->second.sizes(), ", "), fmt::join(tensor.sizes(), ", ")),
           where, ""});
    }
  }
  for (const auto& [name, tensor] : given) {
    if (wanted.contains(name)) continue;
    problems.push_back({fmt::format("has a tensor '{}' that the model lacks", name), where, ""});
  }
  return problems;
}

}  // namespace

NamedTensors state_of(const torch::nn::Module& module) {
  NamedTensors state;
  for (const auto& item : module.named_parameters()) state[item.key()] = item.value().detach();
  for (const auto& item : module.named_buffers()) state[item.key()] = item.value().detach();
  return state;
}

void load_state(torch::nn::Module& module, const NamedTensors& state, const std::filesystem::path& where) {
  NamedTensors own = state_of(module);
  if (auto problems = compare(own, state, where.string()); !problems.empty()) {
    throw Error(ErrorKind::usage, std::move(problems));
  }
  const at::NoGradGuard no_grad;
  for (auto& [name, tensor] : own) tensor.copy_(state.at(name));
}

void save_model_file(const torch::nn::Module& module, const std::filesystem::path& file) {
  // Python's readers look for this word.
  write_safetensors(file, {.tensors = state_of(module), .metadata = {{"format", "pt"}}});
}

void load_model_file(torch::nn::Module& module, const std::filesystem::path& file) {
  load_state(module, read_safetensors(file).tensors, file);
}

}  // namespace acc
