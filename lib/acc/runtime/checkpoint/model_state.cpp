// SPDX-License-Identifier: Apache-2.0
#include "acc/runtime/checkpoint/model_state.hpp"

#include <ATen/MemoryOverlap.h>
#include <ATen/core/grad_mode.h>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <torch/nn/module.h>

#include <algorithm>
#include <iterator>
#include <map>
#include <string_view>
#include <utility>

#include "acc/base/error.hpp"
#include "acc/base/text.hpp"
#include "acc/runtime/sharded/unit.hpp"

namespace acc {
namespace {

constexpr std::string_view kDdpPrefix = "module.";

// Compares storages, not addresses: parameters of the meta device and sharded ones have none.
bool same_memory(const at::Tensor& a, const at::Tensor& b) {
  return a.numel() > 0 && a.is_alias_of(b) && a.storage_offset() == b.storage_offset() &&
         a.scalar_type() == b.scalar_type() && a.sizes() == b.sizes() && a.strides() == b.strides();
}

// Of a tensor that has a storage. Tensors of the same memory have the same.
using MemoryStart = std::pair<const c10::StorageImpl*, std::int64_t>;

MemoryStart start_of(const at::Tensor& tensor) {
  return {tensor.storage().unsafeGetStorageImpl(), tensor.storage_offset()};
}

/// Tensors by their memory: to find one, only those are compared that begin where it does.
class TensorsByMemory {
 public:
  void add(const at::Tensor& tensor) {
    if (tensor.has_storage()) tensors_.emplace(start_of(tensor), tensor);
  }
  bool has_same_memory(const at::Tensor& tensor) const {
    if (!tensor.has_storage()) return false;
    const auto [first, last] = tensors_.equal_range(start_of(tensor));
    return std::any_of(first, last, [&](const auto& other) { return same_memory(other.second, tensor); });
  }

 private:
  std::multimap<MemoryStart, at::Tensor> tensors_ = {};
};

std::vector<std::string> names_of(const NamedTensors& tensors) {
  std::vector<std::string> names;
  for (const auto& [name, tensor] : tensors) names.push_back(name);
  return names;
}

std::vector<Problem> problems_of(const IncompatibleKeys& keys, const NamedTensors& state,
                                 const std::string& where) {
  std::vector<Problem> problems;
  for (const std::string& name : keys.missing_keys)
    problems.push_back({fmt::format("has no tensor '{}'", name), where, did_you_mean(name, names_of(state))});
  for (const std::string& name : keys.unexpected_keys)
    problems.push_back({fmt::format("has a tensor '{}' that the model lacks", name), where, ""});
  return problems;
}

std::vector<Problem> compare_shapes(const NamedTensors& model, const NamedTensors& state,
                                    const std::string& where) {
  std::vector<Problem> problems;
  for (const auto& [name, tensor] : model) {
    const auto found = state.find(name);
    if (found == state.end() || found->second.sizes() == tensor.sizes()) continue;
    problems.push_back({fmt::format("tensor '{}' is [{}], the model's is [{}]", name,
                                    fmt::join(found->second.sizes(), ", "), fmt::join(tensor.sizes(), ", ")),
                        where, ""});
  }
  return problems;
}

// Also if elements are NaN in both.
bool same_values(const at::Tensor& a, const at::Tensor& b) {
  const auto bytes = [](const at::Tensor& tensor) {
    const at::Tensor dense = tensor.contiguous();
    return dense.as_strided({dense.numel()}, {1}).view(at::kByte);
  };
  return a.equal(b) || (a.sizes() == b.sizes() && bytes(a).equal(bytes(b)));
}

// What cannot be written to, unless it has these values: a model may be loaded from what it has saved itself.
std::vector<Problem> find_unwritable(const NamedTensors& model, const NamedTensors& state,
                                     const std::string& where) {
  std::vector<Problem> problems;
  for (const auto& [name, tensor] : model) {
    const auto found = state.find(name);
    if (found == state.end()) continue;
    const at::Tensor& saved = found->second;
    if (tensor.layout() != at::kStrided) {
      problems.push_back({fmt::format("tensor '{}' cannot be loaded: in the model it is sparse", name), where,
                          "register what its to_dense() returns"});
    } else if (detail::is_expanded(tensor)) {
      const bool has_values = !tensor.is_meta() && !saved.is_meta() && saved.layout() == at::kStrided;
      if (has_values && same_values(saved.to(tensor.device(), tensor.scalar_type()), tensor)) continue;
      problems.push_back(
          {fmt::format("tensor '{}' cannot be loaded: in the model its elements share memory", name), where,
           "register a copy of what expand() returned, its clone()"});
    }
  }
  return problems;
}

// The values that the model would get depend on the order of the names, in PyTorch too.
std::vector<Problem> compare_ties(const NamedTensors& model, const NamedTensors& state,
                                  const std::string& where) {
  std::vector<Problem> problems;
  std::multimap<MemoryStart, std::string> names;
  for (const auto& [name, tensor] : model) {
    const auto found = state.find(name);
    if (found == state.end() || found->second.is_meta()) continue;
    const auto value_of = [&, type = tensor.scalar_type()](const std::string& one) {
      return state.at(one).to(type);
    };
    const MemoryStart start = start_of(tensor);
    const auto from_there = names.equal_range(start);
    for (auto other = from_there.first; other != from_there.second; ++other) {
      if (!same_memory(model.at(other->second), tensor) ||
          same_values(value_of(other->second), value_of(name)))
        continue;
      problems.push_back({fmt::format("tensors '{}' and '{}' differ, and the model has one weight for both",
                                      other->second, name),
                          where, "leave one of them out, or give the model two weights"});
    }
    names.emplace(start, name);
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

NamedTensors as_named_in(const NamedTensors& model, NamedTensors state) {
  return !state.empty() && all_prefixed(state) && !all_prefixed(model) ? without_prefix(state) : state;
}

IncompatibleKeys compare(const NamedTensors& model, const NamedTensors& state) {
  IncompatibleKeys keys;
  // A file stores a tied weight once, under one of its names.
  TensorsByMemory given;
  for (const auto& [name, tensor] : model) {
    if (state.contains(name)) given.add(tensor);
  }
  for (const auto& [name, tensor] : model) {
    if (!state.contains(name) && !given.has_same_memory(tensor)) keys.missing_keys.push_back(name);
  }
  for (const auto& [name, tensor] : state) {
    if (!model.contains(name)) keys.unexpected_keys.push_back(name);
  }
  return keys;
}

// See detail::require_fitting; `model` is the module's state.
IncompatibleKeys fitting_keys(const NamedTensors& model, const NamedTensors& state,
                              const std::filesystem::path& where, bool strict) {
  IncompatibleKeys keys = compare(model, state);
  std::vector<Problem> problems = compare_shapes(model, state, where.string());
  std::ranges::move(find_unwritable(model, state, where.string()), std::back_inserter(problems));
  if (strict) std::ranges::move(problems_of(keys, state, where.string()), std::back_inserter(problems));
  if (problems.empty()) problems = compare_ties(model, state, where.string());
  if (!problems.empty()) throw Error(ErrorKind::usage, std::move(problems));
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

IncompatibleKeys compare_keys(const torch::nn::Module& module, const NamedTensors& state) {
  const NamedTensors own = state_of(module);
  return compare(own, as_named_in(own, state));
}

IncompatibleKeys load_state(torch::nn::Module& module, const NamedTensors& state,
                            const std::filesystem::path& where, bool strict) {
  detail::plan_model_load(module, state, where, strict)();
  return compare_keys(module, state);
}

namespace detail {

bool is_expanded(const at::Tensor& tensor) {
  return tensor.layout() == at::kStrided && at::has_internal_overlap(tensor) == at::MemOverlap::Yes;
}

OrderedTensors with_full_values(OrderedTensors tensors, bool keep) {
  const at::NoGradGuard no_grad;
  std::map<const Unit*, at::Tensor> values;
  for (auto& [name, tensor] : tensors) {
    Unit* unit = unit_of(tensor);
    if (unit == nullptr) continue;
    const Piece& piece = unit->pieces()[unit->piece_at(tensor.storage_offset())];
    const auto [entry, is_new] = values.try_emplace(unit);
    if (is_new) {
      at::Tensor flat = unit->collect(unit->shard());
      if (keep) entry->second = std::move(flat);
    }
    tensor = keep ? entry->second.narrow(0, piece.offset, piece.numel).view(piece.shape) : at::Tensor();
  }
  std::erase_if(tensors, [](const auto& item) { return !item.second.defined(); });
  return tensors;
}

OrderedTensors without_ties(const OrderedTensors& tensors) {
  OrderedTensors result;
  TensorsByMemory known;
  for (const auto& item : tensors) {
    if (known.has_same_memory(item.second)) continue;
    known.add(item.second);
    result.push_back(item);
  }
  return result;
}

NamedTensors named_as_in(const torch::nn::Module& module, NamedTensors state) {
  return as_named_in(state_of(module), std::move(state));
}

IncompatibleKeys require_fitting(const torch::nn::Module& module, const NamedTensors& state,
                                 const std::filesystem::path& where, bool strict) {
  return fitting_keys(state_of(module), state, where, strict);
}

std::function<void()> plan_model_load(torch::nn::Module& module, NamedTensors state,
                                      const std::filesystem::path& where, bool strict) {
  NamedTensors model = state_of(module);
  state = as_named_in(model, std::move(state));
  for (const std::string& name : fitting_keys(model, state, where, strict).unexpected_keys) state.erase(name);
  std::erase_if(state, [&](const auto& item) { return is_expanded(model.at(item.first)); });
  return [model = std::move(model), state = std::move(state)]() mutable {
    const at::NoGradGuard no_grad;
    for (const auto& [name, tensor] : state) assign(model.at(name), tensor);
  };
}

}  // namespace detail

}  // namespace acc
