// SPDX-License-Identifier: Apache-2.0
#include "acc/runtime/checkpoint/parameter_names.hpp"

#include <fmt/format.h>
#include <torch/nn/module.h>
#include <torch/optim/optimizer.h>

#include <algorithm>
#include <set>
#include <string_view>
#include <unordered_map>
#include <utility>

#include "acc/base/error.hpp"
#include "acc/runtime/checkpoint/optimizer_state.hpp"
#include "acc/runtime/sharded/sharded_optimizer.hpp"
#include "acc/runtime/sharded/unit.hpp"

namespace acc::detail {
namespace {

[[noreturn]] void refuse_names(const std::string& where, const std::string& what) {
  throw Error({.kind = ErrorKind::config, .what = what, .where = where});
}

const PtList* list_in(const PtValue& dict, const char* name) {
  const PtValue* value = dict.find(name);
  return value != nullptr ? value->get_if<PtList>() : nullptr;
}

bool has_names(const PtList& groups) {
  return std::ranges::any_of(groups, [](const PtValue& group) {
    const PtList* params = list_in(group, "params");
    return params != nullptr && !params->empty() && params->front().get_if<std::string>() != nullptr;
  });
}

std::unordered_map<std::string_view, const PtValue*> by_name(const PtValue& dict) {
  std::unordered_map<std::string_view, const PtValue*> values;
  const auto* entries = dict.get_if<PtDict>();
  if (entries == nullptr) return values;
  for (const PtEntry& entry : *entries)
    if (const auto* name = entry.key.get_if<std::string>()) values.try_emplace(*name, &entry.value);
  return values;
}

}  // namespace

std::vector<std::vector<at::Tensor>> original_parameters(const CheckpointContent& content,
                                                         std::size_t optimizer) {
  std::vector<std::vector<at::Tensor>> groups;
  if (const auto sharded = content.sharded(optimizer)) {
    for (const auto& group : sharded->groups()) {
      groups.emplace_back();
      for (const auto& [unit, piece, tensor] : group)
        groups.back().push_back(unit != nullptr ? unit->pieces()[piece].parameter : tensor);
    }
  } else {
    for (const auto& group : content.optimizers[optimizer]->param_groups()) groups.push_back(group.params());
  }
  return groups;
}

ParameterNames names_in_model(const CheckpointContent& content, std::size_t optimizer) {
  std::unordered_map<const c10::TensorImpl*, std::pair<const torch::nn::Module*, std::string>> entries;
  for (const torch::nn::Module* model : content.models)
    for (const auto& item : model->named_parameters())
      entries.try_emplace(item.value().unsafeGetTensorImpl(), model, item.key());
  ParameterNames names;
  const torch::nn::Module* model = nullptr;
  for (const auto& group : original_parameters(content, optimizer)) {
    for (const at::Tensor& parameter : group) {
      const auto match = entries.find(parameter.unsafeGetTensorImpl());
      if (match == entries.end() || (model != nullptr && model != match->second.first)) {
        throw Error({.what = "its parameters are not those of one prepared model, so they have no names in a "
                             "checkpoint",
                     .where = fmt::format("optimizer {}", optimizer),
                     .hint = "give each model an optimizer of its own; StateDictType::full needs no names"});
      }
      model = match->second.first;
      names.emplace(match->first, match->second.second);
    }
  }
  return names;
}

void require_names(std::size_t group, const PtValue& saved, const std::vector<std::string>& expected,
                   const std::string& where) {
  std::set<std::string> missing(expected.begin(), expected.end());
  const PtList* names = list_in(saved, "params");
  if (names == nullptr)
    refuse_names(where, fmt::format("parameter group {} has no names of parameters", group));
  for (const PtValue& name : *names) {
    const auto* text = name.get_if<std::string>();
    if (text == nullptr || missing.erase(*text) == 0) {
      refuse_names(where, fmt::format("parameter group {} has '{}', which the optimizer's has not", group,
                                      text != nullptr ? *text : "a number"));
    }
  }
  if (!missing.empty())
    refuse_names(where, fmt::format("parameter group {} lacks '{}', which the optimizer has", group,
                                    *missing.begin()));
}

PtValue with_numbers(const CheckpointContent& content, std::size_t optimizer, PtValue state,
                     const std::string& where) {
  const PtList* groups = list_in(state, "param_groups");
  const PtValue* saved = state.find("state");
  if (groups == nullptr || saved == nullptr || !has_names(*groups)) return state;
  const ParameterNames names = names_in_model(content, optimizer);
  const std::vector<std::vector<at::Tensor>> parameters = original_parameters(content, optimizer);
  if (groups->size() != parameters.size())
    refuse_names(where,
                 fmt::format("has {} parameter groups, the optimizer {}", groups->size(), parameters.size()));

  const std::unordered_map<std::string_view, const PtValue*> states = by_name(*saved);
  PtDict numbered;
  PtList numbered_groups = *groups;
  std::int64_t next = 0;
  for (std::size_t i = 0; i < parameters.size(); ++i) {
    std::vector<std::string> of_group;
    PtList numbers;
    for (const at::Tensor& parameter : parameters[i]) {
      of_group.push_back(names.at(parameter.unsafeGetTensorImpl()));
      const auto fields = states.find(of_group.back());
      if (fields != states.end()) numbered.push_back({next, *fields->second});
      numbers.emplace_back(next++);
    }
    require_names(i, (*groups)[i], of_group, where);
    replace_params(numbered_groups[i], std::move(numbers));
  }
  return PtDict{{"state", std::move(numbered)}, {"param_groups", std::move(numbered_groups)}};
}

}  // namespace acc::detail
