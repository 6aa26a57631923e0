// SPDX-License-Identifier: Apache-2.0
#include "acc/runtime/checkpoint/gathered_optimizer_state.hpp"

#include <ATen/core/grad_mode.h>
#include <ATen/ops/zeros.h>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <torch/optim/optimizer.h>

#include <algorithm>
#include <cstdint>
#include <map>
#include <unordered_map>
#include <utility>
#include <vector>

#include "acc/base/error.hpp"
#include "acc/formats/state_messages.hpp"
#include "acc/runtime/checkpoint/optimizer_state.hpp"
#include "acc/runtime/comm/operations.hpp"
#include "acc/runtime/sharded/sharded_module.hpp"
#include "acc/runtime/sharded/sharded_optimizer.hpp"
#include "acc/runtime/sharded/unit.hpp"

namespace acc::detail {
namespace {

using PieceKey = std::pair<const Unit*, std::size_t>;  // a piece of a unit
using Fields = std::map<PieceKey, std::vector<PieceField>>;

// The index of each tensor of an optimizer, as in its state.
std::unordered_map<const c10::TensorImpl*, std::int64_t> indices_of(
    const torch::optim::Optimizer& optimizer) {
  std::unordered_map<const c10::TensorImpl*, std::int64_t> indices;
  std::int64_t next = 0;
  for (const auto& group : optimizer.param_groups())
    for (const at::Tensor& parameter : group.params()) indices[parameter.unsafeGetTensorImpl()] = next++;
  return indices;
}

// Whether a field has a number for each element, not one for all. Of a parameter without dimensions it has
// none either; the count of steps alone is not the parameter's.
bool is_spread(const PtEntry& field) {
  const auto* tensor = field.value.get_if<at::Tensor>();
  return tensor != nullptr && (tensor->dim() > 0 || *field.key.get_if<std::string>() != "step");
}

struct LocalPart {
  Unit* unit;
  std::size_t piece;
  Overlap overlap;
  std::int64_t index;
};

std::vector<LocalPart> parts_of(const ShardedOptimizer& optimizer) {
  const auto indices = indices_of(optimizer.native());
  std::vector<LocalPart> parts;
  for (const auto& module : optimizer.modules()) {
    for (const auto& unit : module->units()) {
      for (const auto& [piece, overlap, values] : unit->trained_parts()) {
        const auto found = indices.find(values.unsafeGetTensorImpl());
        if (found != indices.end()) parts.push_back({unit.get(), piece, overlap, found->second});
      }
    }
  }
  return parts;
}

// Null for a number that has none.
const PtValue* find_state(const StatesByNumber& states, std::int64_t number) {
  const auto match = states.find(number);
  return match != states.end() ? match->second : nullptr;
}

FieldsByPiece fields_here(const ShardedOptimizer& optimizer, const PtValue& local) {
  FieldsByPiece fields;
  const StatesByNumber states = states_by_number(*local.find("state"));
  const std::vector<LocalPart> parts = parts_of(optimizer);
  for (std::size_t m = 0; m < optimizer.modules().size(); ++m) {
    const auto& units = optimizer.modules()[m]->units();
    for (std::size_t u = 0; u < units.size(); ++u) {
      for (const LocalPart& part : parts) {
        const PtValue* state = part.unit == units[u].get() ? find_state(states, part.index) : nullptr;
        if (state == nullptr) continue;
        std::vector<PieceField>& of_piece = fields[{.module = m, .unit = u, .piece = part.piece}];
        for (const PtEntry& entry : *state->get_if<PtDict>())
          of_piece.push_back({.name = *entry.key.get_if<std::string>(),
                              .number = is_spread(entry) ? std::nullopt : entry.value.number()});
      }
    }
  }
  return fields;
}

// Those of all processes.
Fields agreed_fields(const ShardedOptimizer& optimizer, const PtValue& local) {
  Fields agreed;
  if (optimizer.modules().empty()) return agreed;
  ProcessGroup& group = optimizer.modules().front()->group();
  int process = 0;
  for (const std::string& text : gather_texts({format_piece_fields(fields_here(optimizer, local))}, &group)) {
    const FieldsByPiece of_process = parse_piece_fields(text, process++);
    for (std::size_t m = 0; m < optimizer.modules().size(); ++m) {
      const auto& units = optimizer.modules()[m]->units();
      for (std::size_t u = 0; u < units.size(); ++u) {
        for (std::size_t p = 0; p < units[u]->pieces().size(); ++p) {
          const auto entry = of_process.find({.module = m, .unit = u, .piece = p});
          if (entry != of_process.end()) agreed.try_emplace({units[u].get(), p}, entry->second);
        }
      }
    }
  }
  return agreed;
}

std::vector<std::string> spread_names(const Unit& unit, const Fields& fields) {
  std::vector<std::string> names;
  for (std::size_t p = 0; p < unit.pieces().size(); ++p) {
    const auto found = fields.find({&unit, p});
    if (found == fields.end()) continue;
    for (const auto& [name, number] : found->second)
      if (!number && std::ranges::find(names, name) == names.end()) names.push_back(name);
  }
  return names;
}

}  // namespace

PtValue gathered_optimizer_state(const ShardedOptimizer& optimizer, bool keep) {
  const at::NoGradGuard no_grad;
  const PtValue local = optimizer_state(optimizer.native());
  const StatesByNumber states = states_by_number(*local.find("state"));
  const Fields fields = agreed_fields(optimizer, local);
  const std::vector<LocalPart> parts = parts_of(optimizer);
  // The gathered fields of each unit, by name.
  std::map<const Unit*, std::map<std::string, at::Tensor>> gathered;
  for (const auto& module : optimizer.modules()) {
    for (const auto& unit : module->units()) {
      for (const std::string& name : spread_names(*unit, fields)) {
        at::Tensor shard = at::zeros({unit->length()}, unit->shard().options());
        for (const LocalPart& part : parts) {
          const PtValue* state = part.unit == unit.get() ? find_state(states, part.index) : nullptr;
          const PtValue* field = state != nullptr ? state->find(name) : nullptr;
          const auto* values = field != nullptr ? field->get_if<at::Tensor>() : nullptr;
          if (values != nullptr) shard.narrow(0, part.overlap.in_shard, part.overlap.length).copy_(*values);
        }
        at::Tensor flat = unit->collect(shard);
        if (keep) gathered[unit.get()][name] = std::move(flat);
      }
    }
  }
  if (!keep) return {};

  PtDict state;
  PtList groups = *local.find("param_groups")->get_if<PtList>();
  const auto indices = indices_of(optimizer.native());
  std::int64_t number = 0;
  for (std::size_t g = 0; g < optimizer.groups().size(); ++g) {
    PtList numbers;
    for (const auto& [unit, piece, tensor] : optimizer.groups()[g]) {
      PtDict of_parameter;
      const auto entry = unit != nullptr ? fields.find({unit, piece}) : fields.end();
      if (unit == nullptr) {
        const PtValue* whole = find_state(states, indices.at(tensor.unsafeGetTensorImpl()));
        if (whole != nullptr) of_parameter = *whole->get_if<PtDict>();
      } else if (entry != fields.end()) {
        const Piece& slice = unit->pieces()[piece];
        for (const auto& [name, number_of_all] : entry->second) {
          if (number_of_all) {
            of_parameter.push_back({name, steps_tensor(*number_of_all)});
          } else {
            const at::Tensor& flat = gathered.at(unit).at(name);
            of_parameter.push_back({name, flat.narrow(0, slice.offset, slice.numel).view(slice.shape)});
          }
        }
      }
      if (!of_parameter.empty()) state.push_back({number, std::move(of_parameter)});
      numbers.emplace_back(number++);
    }
    replace_params(groups[g], std::move(numbers));
  }
  return PtDict{{"state", std::move(state)}, {"param_groups", std::move(groups)}};
}

namespace {

// Reads a full state for the shards of an optimizer, and collects everything that does not fit.
class ShardReader {
 public:
  ShardReader(const ShardedOptimizer& optimizer, const PtValue& full, const std::string& where)
      : optimizer_(optimizer), full_(full), where_(where) {}

  PtValue read() {
    const PtValue* groups = full_.find("param_groups");
    const auto* list = groups != nullptr ? groups->get_if<PtList>() : nullptr;
    const PtValue* states = full_.find("state");
    // What is wrong with it otherwise is found by plan_optimizer_load.
    if (list == nullptr || states == nullptr || list->size() != optimizer_.groups().size()) return full_;
    states_ = states_by_number(*states);
    for (std::size_t g = 0; g < list->size(); ++g) note_states(g, (*list)[g]);
    if (!problems_.empty()) throw Error(ErrorKind::config, std::move(problems_));
    return PtDict{{"state", shard_states()}, {"param_groups", local_groups(*list)}};
  }

 private:
  void add(std::string subject, const std::string& what) {
    problems_.push_back({std::move(subject) + " " + what, where_, ""});
  }

  void note_states(std::size_t group, const PtValue& saved) {
    const PtValue* params = saved.find("params");
    const auto* numbers = params != nullptr ? params->get_if<PtList>() : nullptr;
    const auto& parameters = optimizer_.groups()[group];
    if (numbers == nullptr || numbers->size() != parameters.size()) {
      add(fmt::format("parameter group {}", group),
          fmt::format("has {} parameters, the optimizer's has {}", numbers != nullptr ? numbers->size() : 0,
                      parameters.size()));
      return;
    }
    for (std::size_t i = 0; i < parameters.size(); ++i) {
      const auto* number = (*numbers)[i].get_if<std::int64_t>();
      const PtValue* state = number != nullptr ? find_state(states_, *number) : nullptr;
      if (state == nullptr || state->get_if<PtDict>() == nullptr) continue;
      if (parameters[i].unit == nullptr) {
        whole_[parameters[i].tensor.unsafeGetTensorImpl()] = state;
        continue;
      }
      const Piece& piece = parameters[i].unit->pieces()[parameters[i].piece];
      for (const PtEntry& entry : *state->get_if<PtDict>()) {
        if (!is_spread(entry) || entry.value.get_if<at::Tensor>()->sizes() == c10::IntArrayRef(piece.shape))
          continue;
        add(fmt::format("parameter {}", *number),
            fmt::format("'{}' is [{}], the parameter is [{}]", *entry.key.get_if<std::string>(),
                        fmt::join(entry.value.get_if<at::Tensor>()->sizes(), ", "),
                        fmt::join(piece.shape, ", ")));
      }
      pieces_[{parameters[i].unit, parameters[i].piece}] = state;
    }
  }

  PtDict shard_states() const {
    PtDict states;
    for (const auto& [unit, piece, overlap, index] : parts_of(optimizer_)) {
      const auto found = pieces_.find({unit, piece});
      if (found == pieces_.end()) continue;
      PtDict of_part;
      for (const PtEntry& entry : *found->second->get_if<PtDict>())
        of_part.push_back(is_spread(entry) ? part_of(entry, overlap) : entry);
      if (!of_part.empty()) states.push_back({index, std::move(of_part)});
    }
    const auto indices = indices_of(optimizer_.native());
    for (const auto& [tensor, state] : whole_) states.push_back({indices.at(tensor), *state});
    return states;
  }

  static PtEntry part_of(const PtEntry& entry, const Overlap& overlap) {
    const at::Tensor values = entry.value.get_if<at::Tensor>()->reshape({-1});
    return {entry.key, values.narrow(0, overlap.in_piece, overlap.length)};
  }

  PtList local_groups(const PtList& full) const {
    PtList groups = full;
    std::int64_t next = 0;
    for (std::size_t g = 0; g < groups.size(); ++g) {
      PtList numbers;
      for (std::size_t i = 0; i < optimizer_.native().param_groups()[g].params().size(); ++i)
        numbers.emplace_back(next++);
      replace_params(groups[g], std::move(numbers));
    }
    return groups;
  }

  const ShardedOptimizer& optimizer_;
  const PtValue& full_;
  const std::string& where_;
  StatesByNumber states_ = {};
  std::map<PieceKey, const PtValue*> pieces_ = {};
  std::map<const c10::TensorImpl*, const PtValue*> whole_ = {};
  std::vector<Problem> problems_ = {};
};

}  // namespace

PtValue shard_of_optimizer_state(const ShardedOptimizer& optimizer, const PtValue& full,
                                 const std::string& where) {
  const at::NoGradGuard no_grad;
  return ShardReader(optimizer, full, where).read();
}

}  // namespace acc::detail
