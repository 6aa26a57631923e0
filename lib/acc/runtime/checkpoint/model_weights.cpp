// SPDX-License-Identifier: Apache-2.0
#include "acc/runtime/checkpoint/model_weights.hpp"

#include <ATen/core/grad_mode.h>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <torch/nn/module.h>

#include <algorithm>
#include <iterator>
#include <map>
#include <nlohmann/json.hpp>
#include <utility>

#include "acc/base/error.hpp"
#include "acc/base/files.hpp"
#include "acc/base/replacement.hpp"
#include "acc/base/text.hpp"
#include "acc/formats/weights_replacement.hpp"
#include "acc/runtime/checkpoint/pt_file.hpp"
#include "acc/runtime/sharded/sharded_gradients.hpp"
#include "acc/runtime/sharded/unit.hpp"

namespace acc {
namespace {

constexpr std::string_view kDdpPrefix = "module.";

// Compares storages, not addresses: parameters of the meta device and sharded ones have none.
bool same_memory(const at::Tensor& a, const at::Tensor& b) {
  return a.numel() > 0 && a.is_alias_of(b) && a.storage_offset() == b.storage_offset() &&
         a.scalar_type() == b.scalar_type() && a.sizes() == b.sizes() && a.strides() == b.strides();
}

std::vector<std::string> names_of(const NamedTensors& tensors) {
  std::vector<std::string> names;
  for (const auto& [name, tensor] : tensors) names.push_back(name);
  return names;
}

// A file stores a tied weight once, under one of its names.
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

// Also if elements are NaN in both.
bool same_values(const at::Tensor& a, const at::Tensor& b) {
  const auto bytes = [](const at::Tensor& tensor) {
    return tensor.contiguous().reshape({-1}).view(at::kByte);
  };
  return a.equal(b) || (a.sizes() == b.sizes() && bytes(a).equal(bytes(b)));
}

// The values that the model would get depend on the order of the names, in PyTorch too.
std::vector<Problem> compare_ties(const NamedTensors& wanted, const NamedTensors& given,
                                  const std::string& where) {
  std::vector<Problem> problems;
  std::multimap<const c10::StorageImpl*, std::string> names;
  for (const auto& [name, tensor] : wanted) {
    const auto found = given.find(name);
    if (found == given.end() || found->second.is_meta()) continue;
    const auto value_of = [&, type = tensor.scalar_type()](const std::string& one) {
      return given.at(one).to(type);
    };
    const c10::StorageImpl* storage = tensor.storage().unsafeGetStorageImpl();
    const auto in_storage = names.equal_range(storage);
    for (auto other = in_storage.first; other != in_storage.second; ++other) {
      if (!same_memory(wanted.at(other->second), tensor) ||
          same_values(value_of(other->second), value_of(name)))
        continue;
      problems.push_back({fmt::format("tensors '{}' and '{}' differ, and the model has one weight for both",
                                      other->second, name),
                          where, "leave one of them out, or give the model two weights"});
    }
    names.emplace(storage, name);
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

// See detail::require_fitting; `own` is the module's state.
IncompatibleKeys fitting_keys(const NamedTensors& own, const NamedTensors& state,
                              const std::filesystem::path& where, bool strict) {
  IncompatibleKeys keys = compare(own, state);
  std::vector<Problem> problems = compare_shapes(own, state, where.string());
  if (strict) std::ranges::move(problems_of(keys, state, where.string()), std::back_inserter(problems));
  if (problems.empty()) problems = compare_ties(own, state, where.string());
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

namespace detail {

OrderedTensors with_full_values(OrderedTensors tensors, bool keep) {
  const at::NoGradGuard no_grad;
  std::map<const Unit*, at::Tensor> values;
  for (auto& [name, tensor] : tensors) {
    Unit* unit = unit_of(tensor);
    if (unit == nullptr) continue;
    const Piece& piece = unit->pieces()[unit->piece_at(tensor.storage_offset())];
    const auto [known, is_new] = values.try_emplace(unit);
    if (is_new) {
      at::Tensor flat = unit->collect(unit->shard());
      if (keep) known->second = std::move(flat);
    }
    tensor = keep ? known->second.narrow(0, piece.offset, piece.numel).view(piece.shape) : at::Tensor();
  }
  std::erase_if(tensors, [](const auto& item) { return !item.second.defined(); });
  return tensors;
}

OrderedTensors without_ties(const OrderedTensors& tensors) {
  OrderedTensors result;
  for (const auto& item : tensors) {
    const auto same = [&](const auto& other) { return same_memory(other.second, item.second); };
    if (std::ranges::none_of(result, same)) result.push_back(item);
  }
  return result;
}

}  // namespace detail

IncompatibleKeys compare_keys(const torch::nn::Module& module, const NamedTensors& state) {
  const NamedTensors own = state_of(module);
  return compare(own, as_named_in(own, state));
}

namespace detail {

NamedTensors named_as_in(const torch::nn::Module& module, NamedTensors state) {
  return as_named_in(state_of(module), std::move(state));
}

IncompatibleKeys require_fitting(const torch::nn::Module& module, const NamedTensors& state,
                                 const std::filesystem::path& where, bool strict) {
  return fitting_keys(state_of(module), state, where, strict);
}

std::function<void()> plan_model_load(torch::nn::Module& module, NamedTensors state,
                                      const std::filesystem::path& where, bool strict) {
  NamedTensors own = state_of(module);
  state = as_named_in(own, std::move(state));
  for (const std::string& name : fitting_keys(own, state, where, strict).unexpected_keys) state.erase(name);
  return [own = std::move(own), state = std::move(state)]() mutable {
    const at::NoGradGuard no_grad;
    for (const auto& [name, tensor] : state) assign(own.at(name), tensor);
  };
}

}  // namespace detail

IncompatibleKeys load_state(torch::nn::Module& module, const NamedTensors& state,
                            const std::filesystem::path& where, bool strict) {
  detail::plan_model_load(module, state, where, strict)();
  return compare_keys(module, state);
}

namespace detail {

void write_model_file(const OrderedTensors& state, const std::filesystem::path& file) {
  const OrderedTensors untied = without_ties(state);
  // Python's readers require this entry.
  write_safetensors(file,
                    {.tensors = NamedTensors(untied.begin(), untied.end()), .metadata = {{"format", "pt"}}});
}

}  // namespace detail

namespace {

// The state of a module that this process has as a whole.
OrderedTensors whole_state_of(const torch::nn::Module& module) {
  if (detail::any_is_sharded(module.parameters())) {
    throw Error({.what = "is sharded: a process alone does not have its parameters",
                 .where = module.name(),
                 .hint = "call accelerator.save_model on all processes"});
  }
  return ordered_state_of(module);
}

}  // namespace

void save_model_file(const torch::nn::Module& module, const std::filesystem::path& file) {
  detail::write_model_file(whole_state_of(module), file);
}

namespace {

namespace fs = std::filesystem;
using Json = nlohmann::json;

std::size_t bytes_of(const OrderedTensors& tensors) {
  std::size_t bytes = 0;
  for (const auto& [name, tensor] : tensors) bytes += tensor.nbytes();
  return bytes;
}

NamedTensors read_state_dict(const fs::path& file) {
  const PtValue value = read_pt_file(file);
  const auto* dict = value.get_if<PtDict>();
  if (dict == nullptr) refuse_file(file, "is not a state_dict: it does not hold a dict");
  NamedTensors tensors;
  for (const PtEntry& entry : *dict) {
    const auto* name = entry.key.get_if<std::string>();
    const auto* tensor = entry.value.get_if<at::Tensor>();
    if (name == nullptr || tensor == nullptr) {
      refuse_file(file,
                  fmt::format("is not a state_dict: '{}' is not a tensor", name != nullptr ? *name : "a key"),
                  "save model.state_dict() alone");
    }
    tensors[*name] = *tensor;
  }
  return tensors;
}

NamedTensors read_file_of_weights(const fs::path& file) {
  return file.extension() == ".safetensors" ? read_safetensors(file).tensors : read_state_dict(file);
}

// Maps each file to the names of its tensors.
std::map<std::string, std::vector<std::string>> read_index(const fs::path& index) {
  const Json json = Json::parse(read_file(index), nullptr, false);
  const auto map = json.is_object() ? json.find("weight_map") : json.end();
  if (!json.is_object() || map == json.end() || !map->is_object())
    refuse_file(index, "is not an index of weights: it has no weight_map");
  std::map<std::string, std::vector<std::string>> files;
  for (const auto& [name, file] : map->items()) {
    // Only a file name is accepted, not a path that leaves the folder.
    if (!file.is_string() || file.get<std::string>().find('/') != std::string::npos)
      refuse_file(index, fmt::format("does not name a file for the tensor '{}'", name));
    files[file.get<std::string>()].push_back(name);
  }
  return files;
}

NamedTensors read_shards_once(const fs::path& index) {
  NamedTensors tensors;
  for (const auto& [name, wanted] : read_index(index)) {
    const fs::path file = index.parent_path() / name;
    if (!fs::exists(file)) refuse_file(index, fmt::format("the file {} is missing", name));
    const NamedTensors found = read_file_of_weights(file);
    for (const std::string& tensor : wanted) {
      const auto one = found.find(tensor);
      if (one == found.end()) refuse_file(index, fmt::format("the tensor '{}' is not in {}", tensor, name));
      tensors.insert(*one);
    }
  }
  return tensors;
}

// A save removes the index before it replaces the shards.
NamedTensors read_shards(const fs::path& index) {
  return read_unreplaced({index}, [&] { return read_shards_once(index); });
}

NamedTensors read_weights_in(const fs::path& folder) {
  for (const char* name : {"model.safetensors", "pytorch_model.bin", "pytorch_model_fsdp.bin"}) {
    if (fs::exists(folder / name)) return read_file_of_weights(folder / name);
    const fs::path index = folder / (std::string(name) + ".index.json");
    if (fs::exists(index)) return read_shards(index);
  }
  refuse_file(folder, "holds no weights", "model.safetensors, pytorch_model.bin or an index of their shards");
}

}  // namespace

namespace detail {

std::vector<WeightShard> plan_shards(const OrderedTensors& tensors, std::uint64_t max_bytes) {
  std::vector<WeightShard> shards;
  WeightShard current;
  std::size_t bytes = 0;
  for (const auto& item : without_ties(tensors)) {
    const std::size_t size = item.second.nbytes();
    if (size > max_bytes) {
      shards.push_back({.tensors = {item}});
      continue;
    }
    if (bytes + size > max_bytes) {
      shards.push_back(std::exchange(current, {}));
      bytes = 0;
    }
    current.tensors.push_back(item);
    bytes += size;
  }
  if (!current.tensors.empty() || shards.empty()) shards.push_back(std::move(current));
  for (std::size_t i = 0; i < shards.size(); ++i) {
    shards[i].name = shards.size() == 1
                         ? std::string(kWeightsFile)
                         : fmt::format("model-{:05}-of-{:05}.safetensors", i + 1, shards.size());
  }
  return shards;
}

std::string shard_index(const std::vector<WeightShard>& shards) {
  if (shards.size() < 2) return "";
  std::size_t total = 0;
  Json map = Json::object();
  for (const WeightShard& shard : shards) {
    total += bytes_of(shard.tensors);
    for (const auto& [name, tensor] : shard.tensors) map[name] = shard.name;
  }
  const Json index = {{"metadata", {{"total_size", total}}}, {"weight_map", map}};
  return index.dump(2) + "\n";
}

}  // namespace detail

void detail::write_weights(const OrderedTensors& state, const fs::path& folder, std::uint64_t max_bytes) {
  require_writable({state.begin(), state.end()});
  const std::vector<WeightShard> shards = plan_shards(state, max_bytes);
  WeightsReplacement weights(folder);
  for (const WeightShard& shard : shards) write_model_file(shard.tensors, weights.temporary() / shard.name);
  if (const std::string index = shard_index(shards); !index.empty())
    replace_file(weights.temporary() / kWeightsIndex, index);
  weights.publish();
}

void save_weights(const torch::nn::Module& module, const fs::path& folder, std::uint64_t max_bytes) {
  detail::write_weights(whole_state_of(module), folder, max_bytes);
}

NamedTensors read_weights(const fs::path& path) {
  if (path.string().ends_with(".index.json")) return read_shards(path);
  if (!fs::is_directory(path)) return read_file_of_weights(path);
  return read_unreplaced({path}, [&] { return read_weights_in(path); });
}

}  // namespace acc
