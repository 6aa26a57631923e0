// SPDX-License-Identifier: Apache-2.0
#include "acc/runtime/checkpoint/model_weights.hpp"

#include <fmt/format.h>
#include <torch/nn/module.h>

#include <map>
#include <nlohmann/json.hpp>
#include <utility>

#include "acc/base/error.hpp"
#include "acc/base/files.hpp"
#include "acc/base/replacement.hpp"
#include "acc/formats/weights_replacement.hpp"
#include "acc/runtime/checkpoint/pt_file.hpp"
#include "acc/runtime/sharded/sharded_gradients.hpp"

namespace acc {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::json;

// The state of a module that this process has as a whole.
OrderedTensors whole_state_of(const torch::nn::Module& module) {
  if (detail::any_is_sharded(module.parameters())) {
    throw Error({.what = "is sharded: a process alone does not have its parameters",
                 .where = module.name(),
                 .hint = "call accelerator.save_model on all processes"});
  }
  return ordered_state_of(module);
}

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
  for (const auto& [name, tensor_names] : read_index(index)) {
    const fs::path file = index.parent_path() / name;
    if (!fs::exists(file)) refuse_file(index, fmt::format("the file {} is missing", name));
    const NamedTensors file_tensors = read_file_of_weights(file);
    for (const std::string& tensor : tensor_names) {
      const auto match = file_tensors.find(tensor);
      if (match == file_tensors.end())
        refuse_file(index, fmt::format("the tensor '{}' is not in {}", tensor, name));
      tensors.insert(*match);
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

void save_model_file(const torch::nn::Module& module, const std::filesystem::path& file) {
  detail::write_model_file(whole_state_of(module), file);
}

void save_weights(const torch::nn::Module& module, const fs::path& folder, std::uint64_t max_bytes) {
  detail::write_weights(whole_state_of(module), folder, max_bytes);
}

NamedTensors read_weights(const fs::path& path) {
  if (path.string().ends_with(".index.json")) return read_shards(path);
  if (!fs::is_directory(path)) return read_file_of_weights(path);
  return read_unreplaced({path}, [&] { return read_weights_in(path); });
}

namespace detail {

void write_model_file(const OrderedTensors& state, const std::filesystem::path& file) {
  const OrderedTensors untied = without_ties(state);
  // Python's readers require this entry.
  write_safetensors(file,
                    {.tensors = NamedTensors(untied.begin(), untied.end()), .metadata = {{"format", "pt"}}});
}

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

void write_weights(const OrderedTensors& state, const fs::path& folder, std::uint64_t max_bytes) {
  require_writable({state.begin(), state.end()});
  const std::vector<WeightShard> shards = plan_shards(state, max_bytes);
  WeightsReplacement weights(folder);
  for (const WeightShard& shard : shards) write_model_file(shard.tensors, weights.temporary() / shard.name);
  if (const std::string index = shard_index(shards); !index.empty())
    replace_file(weights.temporary() / kWeightsIndex, index);
  weights.publish();
}

}  // namespace detail

}  // namespace acc
