// SPDX-License-Identifier: Apache-2.0
#include "acc/runtime/checkpoint/weights_folder.hpp"

#include <fmt/format.h>

#include <nlohmann/json.hpp>
#include <regex>
#include <set>
#include <utility>

#include "acc/base/error.hpp"
#include "acc/base/files.hpp"
#include "acc/runtime/checkpoint/pt_reader.hpp"

namespace acc {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::json;

constexpr std::string_view kOneFile = "model.safetensors";
constexpr std::string_view kIndex = "model.safetensors.index.json";

[[noreturn]] void fail(const fs::path& where, const std::string& what, const std::string& hint = "") {
  throw Error({.kind = ErrorKind::config, .what = what, .where = where.string(), .hint = hint});
}

std::size_t bytes_of(const OrderedTensors& tensors) {
  std::size_t bytes = 0;
  for (const auto& [name, tensor] : tensors) bytes += tensor.nbytes();
  return bytes;
}

// What an earlier save of other sizes left would be found before, or mixed with, this one.
void remove_stale(const fs::path& folder, const std::vector<WeightShard>& shards) {
  static const std::regex kOurs(R"(model(-\d{5}-of-\d{5})?\.safetensors(\.index\.json)?)");
  std::set<std::string> kept;
  for (const WeightShard& shard : shards) kept.insert(shard.name);
  if (shards.size() > 1) kept.emplace(kIndex);
  std::vector<fs::path> stale;
  for (const auto& entry : fs::directory_iterator(folder)) {
    const std::string name = entry.path().filename().string();
    if (std::regex_match(name, kOurs) && !kept.contains(name)) stale.push_back(entry.path());
  }
  for (const fs::path& file : stale) {
    std::error_code error;
    if (!fs::remove(file, error) && error) {
      throw Error({.kind = ErrorKind::system,
                   .what = "cannot be removed: " + error.message(),
                   .where = file.string()});
    }
  }
}

NamedTensors read_state_dict(const fs::path& file) {
  const PtValue value = read_pt_file(file);
  const auto* dict = value.get_if<PtDict>();
  if (dict == nullptr) fail(file, "is no state_dict: it holds no dict");
  NamedTensors tensors;
  for (const PtEntry& entry : *dict) {
    const auto* name = entry.key.get_if<std::string>();
    const auto* tensor = entry.value.get_if<at::Tensor>();
    if (name == nullptr || tensor == nullptr) {
      fail(file, fmt::format("is no state_dict: '{}' is no tensor", name != nullptr ? *name : "a key"),
           "save model.state_dict() alone");
    }
    tensors[*name] = *tensor;
  }
  return tensors;
}

NamedTensors read_file_of_weights(const fs::path& file) {
  return file.extension() == ".safetensors" ? read_safetensors(file).tensors : read_state_dict(file);
}

// Which tensors are in which file.
std::map<std::string, std::vector<std::string>> read_index(const fs::path& index) {
  const Json json = Json::parse(read_file(index), nullptr, false);
  const auto map = json.is_object() ? json.find("weight_map") : json.end();
  if (!json.is_object() || map == json.end() || !map->is_object())
    fail(index, "is no index of weights: it has no weight_map");
  std::map<std::string, std::vector<std::string>> files;
  for (const auto& [name, file] : map->items()) {
    // A file name, not a path out of the folder.
    if (!file.is_string() || file.get<std::string>().find('/') != std::string::npos)
      fail(index, fmt::format("names no file for the tensor '{}'", name));
    files[file.get<std::string>()].push_back(name);
  }
  return files;
}

NamedTensors read_shards(const fs::path& index) {
  NamedTensors tensors;
  for (const auto& [name, wanted] : read_index(index)) {
    const fs::path file = index.parent_path() / name;
    if (!fs::exists(file)) fail(index, fmt::format("the file {} is missing", name));
    const NamedTensors found = read_file_of_weights(file);
    for (const std::string& tensor : wanted) {
      const auto one = found.find(tensor);
      if (one == found.end()) fail(index, fmt::format("the tensor '{}' is not in {}", tensor, name));
      tensors.insert(*one);
    }
  }
  return tensors;
}

}  // namespace

std::vector<WeightShard> plan_shards(const OrderedTensors& tensors, std::uint64_t most) {
  std::vector<WeightShard> shards;
  WeightShard current;
  std::size_t bytes = 0;
  for (const auto& item : without_ties(tensors)) {
    const std::size_t size = item.second.nbytes();
    if (size > most) {
      shards.push_back({.tensors = {item}});
      continue;
    }
    if (bytes + size > most) {
      shards.push_back(std::exchange(current, {}));
      bytes = 0;
    }
    current.tensors.push_back(item);
    bytes += size;
  }
  if (!current.tensors.empty() || shards.empty()) shards.push_back(std::move(current));
  for (std::size_t i = 0; i < shards.size(); ++i) {
    shards[i].name = shards.size() == 1
                         ? std::string(kOneFile)
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

void save_weights(const torch::nn::Module& module, const fs::path& folder, std::uint64_t most) {
  const std::vector<WeightShard> shards = plan_shards(ordered_state_of(module), most);
  for (const WeightShard& shard : shards) write_model_file(shard.tensors, folder / shard.name);
  if (const std::string index = shard_index(shards); !index.empty()) replace_file(folder / kIndex, index);
  remove_stale(folder, shards);
}

NamedTensors read_weights(const fs::path& path) {
  if (!fs::is_directory(path)) return read_file_of_weights(path);
  for (const char* name : {"model.safetensors", "pytorch_model.bin"}) {
    if (fs::exists(path / name)) return read_file_of_weights(path / name);
    const fs::path index = path / (std::string(name) + ".index.json");
    if (fs::exists(index)) return read_shards(index);
  }
  fail(path, "holds no weights", "model.safetensors, pytorch_model.bin or an index of their shards");
}

}  // namespace acc
