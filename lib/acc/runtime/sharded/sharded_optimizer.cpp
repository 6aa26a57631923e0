// SPDX-License-Identifier: Apache-2.0
#include "acc/runtime/sharded/sharded_optimizer.hpp"

#include <ATen/core/grad_mode.h>
#include <ATen/ops/full.h>
#include <fmt/format.h>
#include <torch/optim/adagrad.h>
#include <torch/optim/adam.h>
#include <torch/optim/adamw.h>
#include <torch/optim/optimizer.h>
#include <torch/optim/rmsprop.h>
#include <torch/optim/sgd.h>

#include <algorithm>
#include <map>
#include <typeindex>
#include <utility>

#include "acc/base/error.hpp"
#include "acc/runtime/sharded/sharded_module.hpp"
#include "acc/runtime/sharded/unit.hpp"

namespace acc::detail {
namespace {

using torch::optim::Adagrad;
using torch::optim::AdagradOptions;
using torch::optim::AdagradParamState;
using Native = torch::optim::Optimizer;

[[noreturn]] void refuse_optimizer(std::string what, std::string hint) {
  throw Error({.what = std::move(what), .where = "optimizer of a sharded model", .hint = std::move(hint)});
}

// A class that is derived from one of these may step in another way.
void require_element_wise(const Native& optimizer) {
  const std::type_index kind = typeid(optimizer);
  const std::vector<std::type_index> elementwise = {typeid(torch::optim::SGD), typeid(torch::optim::Adam),
                                                    typeid(torch::optim::AdamW),
                                                    typeid(torch::optim::RMSprop), typeid(Adagrad)};
  if (std::ranges::find(elementwise, kind) == elementwise.end())
    refuse_optimizer("it is not known to treat each element alike, so it cannot step on shards",
                     "SGD, Adam, AdamW, RMSprop and Adagrad can");
}

// Adagrad makes its state when it is constructed. Its sums begin with the same number everywhere.
double initial_sum(const Native& optimizer) {
  return static_cast<const AdagradOptions&>(optimizer.defaults()).initial_accumulator_value();
}

void require_new(Native& optimizer) {
  bool has_stepped = !optimizer.state().empty();
  if (dynamic_cast<const Adagrad*>(&optimizer) != nullptr) {
    has_stepped = std::ranges::any_of(optimizer.state(), [](const auto& entry) {
      return static_cast<const AdagradParamState&>(*entry.second).step() != 0;
    });
  }
  if (has_stepped)
    refuse_optimizer("it has stepped already, and its state is not sharded",
                     "prepare it before its first step; load_state restores an earlier state");
}

// The group of each piece that the optimizer trains.
using GroupOf = std::map<std::pair<const Unit*, std::size_t>, std::size_t>;

// A parameter of two groups would be stepped twice.
void require_groups_apart(const Native& optimizer) {
  GroupOf group_of;
  for (std::size_t number = 0; number < optimizer.param_groups().size(); ++number) {
    for (const at::Tensor& parameter : optimizer.param_groups()[number].params()) {
      const Unit* unit = unit_of(parameter);
      if (unit == nullptr) continue;  // looked at before each step
      const std::size_t piece = unit->piece_at(parameter.storage_offset());
      const std::size_t first = group_of.try_emplace({unit, piece}, number).first->second;
      if (first == number) continue;
      refuse_optimizer(fmt::format("parameter '{}' is in the groups {} and {}, which would each step it",
                                   unit->pieces()[piece].name, first, number),
                       "leave it in one of them; layers that share a weight each list it");
    }
  }
}

// The parts of a unit that the optimizer trains, each with its group. Optimizers of one piece share its part,
// and so its gradient, as they share a whole parameter.
std::vector<std::pair<std::size_t, at::Tensor>> parts_by_group(const Unit& unit, const GroupOf& group_of) {
  std::vector<std::pair<std::size_t, at::Tensor>> parts;
  for (const TrainedPart& part : unit.trained_parts()) {
    const auto group = group_of.find({&unit, part.piece});
    if (group != group_of.end()) parts.emplace_back(group->second, part.values);
  }
  return parts;
}

template <class Predicate>
bool any_has_unit(const Native& optimizer, const Predicate& is_wanted) {
  return std::ranges::any_of(optimizer.param_groups(), [&](const auto& group) {
    return std::ranges::any_of(group.params(),
                               [&](const at::Tensor& parameter) { return is_wanted(unit_of(parameter)); });
  });
}

}  // namespace

bool has_sharded_parameters(const Native& optimizer) {
  return any_has_unit(optimizer, [](const Unit* unit) { return unit != nullptr; });
}

bool has_parameters_of(const Native& optimizer, const ShardedModule& module) {
  return any_has_unit(optimizer, [&](const Unit* unit) {
    return std::ranges::any_of(module.units(), [&](const auto& one) { return one.get() == unit; });
  });
}

ShardedOptimizer::ShardedOptimizer(Native& optimizer,
                                   const std::vector<std::shared_ptr<ShardedModule>>& modules)
    : native_(optimizer) {
  require_element_wise(optimizer);
  require_new(optimizer);
  require_groups_apart(optimizer);
  const at::NoGradGuard no_grad;
  GroupOf group_of;
  for (auto& group : optimizer.param_groups()) {
    std::vector<Parameter> parameters;
    std::vector<at::Tensor> unsharded;
    for (const at::Tensor& parameter : group.params()) {
      Unit* unit = unit_of(parameter);
      if (unit == nullptr) {
        unsharded.push_back(parameter);
        parameters.push_back({.tensor = parameter});
        continue;
      }
      const std::size_t piece = unit->piece_at(parameter.storage_offset());
      parameters.push_back({.unit = unit, .piece = piece});
      optimizer.state().erase(parameter.unsafeGetTensorImpl());
      if (unit->pieces()[piece].trains) group_of[{unit, piece}] = groups_.size();
    }
    groups_.push_back(std::move(parameters));
    group.params() = std::move(unsharded);
  }
  const bool is_adagrad = dynamic_cast<const Adagrad*>(&optimizer) != nullptr;
  for (const auto& module : modules) {
    std::vector<at::Tensor> parts;
    std::vector<std::pair<const Unit*, std::size_t>> pieces;
    for (const auto& unit : module->units()) {
      for (const auto& entry : group_of)
        if (entry.first.first == unit.get()) pieces.push_back(entry.first);
      for (auto& [group, part] : parts_by_group(*unit, group_of)) {
        optimizer.param_groups()[group].params().push_back(part);
        parts.push_back(part);
        if (!is_adagrad) continue;
        auto state = std::make_unique<AdagradParamState>();
        state->step(0);
        state->sum(at::full(part.sizes(), initial_sum(optimizer), part.options().requires_grad(false)));
        optimizer.state()[part.unsafeGetTensorImpl()] = std::move(state);
      }
    }
    if (pieces.empty()) continue;
    module->add_optimizer(optimizer, pieces, parts);
    modules_.push_back(module);
  }
}

}  // namespace acc::detail
