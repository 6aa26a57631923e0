// SPDX-License-Identifier: Apache-2.0
#include "acc/runtime/checkpoint/model_file.hpp"

#include <ATen/core/grad_mode.h>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <torch/nn/module.h>

#include <algorithm>
#include <iterator>

#include "acc/base/error.hpp"
#include "acc/base/text.hpp"

namespace acc {
namespace {

constexpr std::string_view kDdpPrefix = "module.";

bool same_memory(const at::Tensor& a, const at::Tensor& b) {
  return a.numel() > 0 && a.const_data_ptr() == b.const_data_ptr() && a.scalar_type() == b.scalar_type() &&
         a.sizes() == b.sizes() && a.strides() == b.strides();
}

std::vector<std::string> names_of(const NamedTensors& tensors) {
  std::vector<std::string> names;
  for (const auto& [name, tensor] : tensors) names.push_back(name);
  return names;
}

// A file has a tied weight once: what is given under one of its names serves for all.
bool tied_to_given(const at::Tensor& tensor, const NamedTensors& wanted, const NamedTensors& given) {
  return std::ranges::any_of(wanted, [&](const auto& other) {
    return given.contains(other.first) && same_memory(other.second, tensor);
  });
}

std::vector<Problem> problems_of(const IncompatibleKeys& keys, const NamedTensors& given,
                                 const std::string& where) {
  std::vector<Problem> problems;
  for (const std::string& name : keys.missing_keys)
    problems.push_back({fmt::format("has no tensor '{}'", name), where, did_you_mean(name, names_of(given))});
  for (const std::string& name : keys.unexpected_keys)
    problems.push_back({fmt::format("has a tensor '{}' that the model lacks", name), where, ""});
  return problems;
}

std::vector<Problem> compare_shapes(const NamedTensors& wanted, const NamedTensors& given,
                                    const std::string& where) {
  std::vector<Problem> problems;
  for (const auto& [name, tensor] : wanted) {
    const auto found = given.find(name);
    if (found == given.end() || found->second.sizes() == tensor.sizes()) continue;
    problems.push_back({fmt::format("tensor '{}' is [{}], the model's is [{}]", name,
                                    fmt::join(found->second.sizes(), ", "), fmt::join(tensor.sizes(), ", ")),
                        where, ""});
  }
  return problems;
}

bool all_prefixed(const NamedTensors& tensors) {
  return std::ranges::all_of(tensors, [](const auto& item) { return item.first.starts_with(kDdpPrefix); });
}

void add_state(const torch::nn::Module& module, const std::string& prefix, OrderedTensors& state) {
  for (const auto& item : module.named_parameters(/*recurse=*/false))
    state.emplace_back(prefix + item.key(), item.value().detach());
  for (const auto& item : module.named_buffers(/*recurse=*/false))
    state.emplace_back(prefix + item.key(), item.value().detach());
  for (const auto& child : module.named_children())
    add_state(*child.value(), prefix + child.key() + ".", state);
}

NamedTensors without_prefix(const NamedTensors& tensors) {
  NamedTensors result;
  for (const auto& [name, tensor] : tensors) result[name.substr(kDdpPrefix.size())] = tensor;
  return result;
}

NamedTensors as_named_in(const NamedTensors& own, NamedTensors state) {
  return !state.empty() && all_prefixed(state) && !all_prefixed(own) ? without_prefix(state) : state;
}

IncompatibleKeys compare(const NamedTensors& wanted, const NamedTensors& given) {
  IncompatibleKeys keys;
  for (const auto& [name, tensor] : wanted) {
    if (!given.contains(name) && !tied_to_given(tensor, wanted, given)) keys.missing_keys.push_back(name);
  }
  for (const auto& [name, tensor] : given) {
    if (!wanted.contains(name)) keys.unexpected_keys.push_back(name);
  }
  return keys;
}

}  // namespace

OrderedTensors ordered_state_of(const torch::nn::Module& module) {
  OrderedTensors state;
  add_state(module, "", state);
  return state;
}

NamedTensors state_of(const torch::nn::Module& module) {
  const OrderedTensors state = ordered_state_of(module);
  return {state.begin(), state.end()};
}

OrderedTensors without_ties(const OrderedTensors& tensors) {
  OrderedTensors result;
  for (const auto& item : tensors) {
    const auto same = [&](const auto& other) { return same_memory(other.second, item.second); };
    if (std::ranges::none_of(result, same)) result.push_back(item);
  }
  return result;
}

IncompatibleKeys compare_keys(const torch::nn::Module& module, const NamedTensors& state) {
  const NamedTensors own = state_of(module);
  return compare(own, as_named_in(own, state));
}

std::function<void()> plan_model_load(torch::nn::Module& module, NamedTensors state,
                                      const std::filesystem::path& where, bool strict) {
  NamedTensors own = state_of(module);
  state = as_named_in(own, std::move(state));
  const IncompatibleKeys keys = compare(own, state);
  std::vector<Problem> problems = compare_shapes(own, state, where.string());
  if (strict) std::ranges::move(problems_of(keys, state, where.string()), std::back_inserter(problems));
  if (!problems.empty()) throw Error(ErrorKind::usage, std::move(problems));
  for (const std::string& name : keys.unexpected_keys) state.erase(name);
  return [own = std::move(own), state = std::move(state)]() mutable {
    const at::NoGradGuard no_grad;
    for (const auto& [name, tensor] : state) own.at(name).copy_(tensor);
  };
}

IncompatibleKeys load_state(torch::nn::Module& module, const NamedTensors& state,
                            const std::filesystem::path& where, bool strict) {
  plan_model_load(module, state, where, strict)();
  return compare_keys(module, state);
}

void write_model_file(const OrderedTensors& state, const std::filesystem::path& file) {
  const OrderedTensors untied = without_ties(state);
  // Python's readers look for this word.
  write_safetensors(file,
                    {.tensors = NamedTensors(untied.begin(), untied.end()), .metadata = {{"format", "pt"}}});
}

void save_model_file(const torch::nn::Module& module, const std::filesystem::path& file) {
  write_model_file(ordered_state_of(module), file);
}

}  // namespace acc
