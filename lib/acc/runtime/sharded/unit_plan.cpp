// SPDX-License-Identifier: Apache-2.0
#include "acc/runtime/sharded/unit_plan.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <torch/nn/module.h>

#include <algorithm>
#include <optional>
#include <regex>
#include <set>
#include <unordered_map>
#include <unordered_set>
#include <utility>

#include "acc/base/error.hpp"
#include "acc/base/text.hpp"
#include "acc/runtime/comm/operations.hpp"
#include "acc/runtime/parallel/parameter_agreement.hpp"

namespace acc::detail {
namespace {

using Named = std::pair<std::string, std::shared_ptr<torch::nn::Module>>;

constexpr std::size_t kRoot = 0;

// All modules but the root, by their names; one that is registered twice has two.
std::vector<Named> submodules_of(const torch::nn::Module& module) {
  std::vector<Named> result;
  const auto add = [&](const auto& self, const torch::nn::Module& parent, const std::string& prefix) -> void {
    for (const auto& child : parent.named_children()) {
      const std::string name = prefix + child.key();
      result.emplace_back(name, child.value());
      self(self, *child.value(), name + ".");
    }
  };
  add(add, module, "");
  return result;
}

std::int64_t count_parameters(const torch::nn::Module& module) {
  std::set<const c10::TensorImpl*> seen;
  std::int64_t count = 0;
  for (const at::Tensor& parameter : module.parameters())
    if (seen.insert(parameter.unsafeGetTensorImpl()).second) count += parameter.numel();
  return count;
}

void require_classes(const std::vector<Named>& modules, const FsdpOptions& options) {
  for (const std::string& class_name : options.transformer_cls_to_wrap) {
    const auto is_of_class = [&](const Named& one) { return is_class(one.second->name(), class_name); };
    if (std::ranges::any_of(modules, is_of_class)) continue;
    std::set<std::string> classes;
    for (const auto& [name, module] : modules) classes.insert(module->name());
    throw Error({.what = fmt::format("the model has no module of the class '{}'", class_name),
                 .where = "transformer_cls_to_wrap",
                 .hint = fmt::format("its classes are {}", fmt::join(classes, ", "))});
  }
}

bool is_unit(const torch::nn::Module& module, const FsdpOptions& options) {
  if (options.min_num_params > 0) return count_parameters(module) > options.min_num_params;
  return std::ranges::any_of(options.transformer_cls_to_wrap,
                             [&](const std::string& name) { return is_class(module.name(), name); });
}

void require_shardable(const std::string& name, const at::Tensor& parameter) {
  std::string what;
  if (parameter.layout() != at::kStrided) what = "is sparse";
  if (parameter.scalar_type() != at::kFloat)
    what = fmt::format("is {}", c10::toString(parameter.scalar_type()));
  if (what.empty()) return;
  throw Error({.what = what + ", and only dense float32 parameters can be sharded",
               .where = fmt::format("parameter '{}'", name),
               .hint = "convert the model with to(torch::kFloat32); mixed_precision chooses the type in "
                       "which it computes"});
}

class Planner {
 public:
  Planner(const torch::nn::Module& module, const FsdpOptions& options)
      : options_(options), sparse_(sparse_parameters(module)) {
    const std::vector<Named> modules = submodules_of(module);
    require_classes(modules, options);
    if (!options.ignored_modules.empty()) ignored_ = std::regex(options.ignored_modules);
    plans_.emplace_back();
    walk(module, "", kRoot, /*ignored=*/false);
  }

  std::vector<UnitPlan> plans() {
    for (PlannedParameter& planned : parameters_) {
      if (planned.ignored) continue;
      const auto& [name, tensor] = planned.parameter;
      require_shardable(name, tensor);
      if (tensor.requires_grad() && sparse_.contains(tensor.unsafeGetTensorImpl()))
        refuse_sparse_gradient(name);
      plans_[planned.unit].parameters.push_back(std::move(planned.parameter));
    }
    std::erase_if(plans_, [](const UnitPlan& plan) { return plan.parameters.empty(); });
    return std::move(plans_);
  }

 private:
  struct PlannedParameter {
    UnitPlan::Parameter parameter;
    std::size_t unit;
    bool ignored;
  };

  void walk(const torch::nn::Module& module, const std::string& prefix, std::size_t unit, bool ignored) {
    for (const auto& item : module.named_parameters(/*recurse=*/false))
      add(prefix + item.key(), item.value(), unit, ignored);
    for (const auto& child : module.named_children()) {
      const std::string name = prefix + child.key();
      const bool is_own_unit = is_unit(*child.value(), options_);
      if (is_own_unit) plans_.push_back({.name = name});
      walk(*child.value(), name + ".", is_own_unit ? plans_.size() - 1 : unit,
           ignored || (ignored_ && std::regex_match(name, *ignored_)));
    }
  }

  void add(const std::string& name, const at::Tensor& tensor, std::size_t unit, bool ignored) {
    if (!tensor.defined()) return;
    if (ignored && tensor.requires_grad()) {
      throw Error({.what = "is in an ignored module and is trained, but nothing would average its gradients",
                   .where = fmt::format("parameter '{}'", name),
                   .hint = "freeze it with requires_grad_(false), or do not ignore its module"});
    }
    if (ignored && tensor.is_meta()) {
      throw Error({.what = "is on the meta device, and in an ignored module, which is not sharded",
                   .where = fmt::format("parameter '{}'", name),
                   .hint = "make it on the CPU, or do not ignore its module"});
    }
    const auto [entry, is_new] = index_.emplace(tensor.unsafeGetTensorImpl(), parameters_.size());
    if (is_new) {
      parameters_.push_back({{name, tensor}, unit, ignored});
    } else if (parameters_[entry->second].unit != unit) {
      parameters_[entry->second].unit = kRoot;
    }
  }

  const FsdpOptions& options_;
  std::unordered_set<const c10::TensorImpl*> sparse_;
  std::optional<std::regex> ignored_ = {};
  std::vector<UnitPlan> plans_ = {};
  std::vector<PlannedParameter> parameters_ = {};
  std::unordered_map<const c10::TensorImpl*, std::size_t> index_ = {};
};

std::string_view without_suffix(std::string_view name) {
  constexpr std::string_view kImpl = "Impl";
  if (name.size() > kImpl.size() && name.ends_with(kImpl)) name.remove_suffix(kImpl.size());
  return name;
}

}  // namespace

void refuse_sparse_gradient(const std::string& parameter) {
  throw Error(
      {.what = "has sparse gradients, which are not averaged in shards",
       .where = fmt::format("parameter '{}'", parameter),
       .hint = "make the embedding without sparse(true), freeze it, or train without fsdp (--use_fsdp)"});
}

bool is_class(std::string_view demangled, std::string_view name) {
  const std::string_view full = without_suffix(demangled);
  const std::string_view wanted = without_suffix(name);
  if (!full.ends_with(wanted)) return false;
  const std::string_view scope = full.substr(0, full.size() - wanted.size());
  return scope.empty() || scope.ends_with("::");
}

std::vector<UnitPlan> plan_units(const torch::nn::Module& module, const FsdpOptions& options) {
  return Planner(module, options).plans();
}

std::vector<std::string> describe_plan(const std::vector<UnitPlan>& plan, const FsdpOptions& options) {
  std::vector<std::string> lines = {options.reshard_after_forward ? "parameters that are freed after forward"
                                                                  : "parameters that stay after forward"};
  for (const UnitPlan& unit : plan) {
    const std::string name = unit.name.empty() ? "the root" : fmt::format("'{}'", unit.name);
    std::int64_t elements = 0;
    for (const UnitPlan::Parameter& parameter : unit.parameters) elements += parameter.tensor.numel();
    lines.push_back(fmt::format("{} with {} of {}", name, pluralize(unit.parameters.size(), "parameter"),
                                pluralize(static_cast<std::uint64_t>(elements), "element")));
  }
  return lines;
}

std::optional<Error> find_difference(const std::vector<std::vector<std::string>>& by_rank) {
  const std::vector<std::string>& first = by_rank.front();
  for (std::size_t rank = 1; rank < by_rank.size(); ++rank) {
    const auto [here, there] = std::ranges::mismatch(first, by_rank[rank]);
    if (here == first.end() && there == by_rank[rank].end()) continue;
    const auto line = [](auto at, const auto& lines) { return at == lines.end() ? "no more units" : *at; };
    return Error(
        {.what = fmt::format("the processes divide the model differently: rank 0 has {}, rank {} has {}",
                             line(here, first), rank, line(there, by_rank[rank])),
         .hint = "every process needs the same settings of sharding"});
  }
  return std::nullopt;
}

std::vector<UnitPlan> plan_same_units(const torch::nn::Module& module, const FsdpOptions& options,
                                      ProcessGroup& group) {
  std::vector<UnitPlan> plan;
  const auto failure = failure_of([&] { plan = plan_units(module, options); });
  std::vector<std::vector<std::string>> by_rank;
  for (const std::string& text : gather_texts({join(describe_plan(plan, options), "\n")}, &group, failure))
    by_rank.push_back(split(text, '\n'));
  if (const auto error = find_difference(by_rank)) throw Error(*error);
  return plan;
}

}  // namespace acc::detail
