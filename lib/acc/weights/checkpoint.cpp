// SPDX-License-Identifier: Apache-2.0
#include "acc/weights/checkpoint.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <map>
#include <nlohmann/json.hpp>
#include <set>
#include <string_view>
#include <utility>

#include "acc/base/error.hpp"
#include "acc/base/files.hpp"
#include "acc/base/home.hpp"
#include "acc/base/text.hpp"
#include "acc/formats/dcp_metadata.hpp"

namespace acc::launcher {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::json;

std::vector<fs::path> files_ending(const fs::path& folder, std::string_view end) {
  std::vector<fs::path> files;
  for (const auto& entry : fs::directory_iterator(folder)) {
    if (entry.path().filename().string().ends_with(end)) files.push_back(entry.path());
  }
  std::ranges::sort(files);
  return files;
}

// The file of each tensor.
std::map<std::string, std::string> read_index(const fs::path& index) {
  const Json json = Json::parse(read_file(index), nullptr, false);
  const auto map = json.is_object() ? json.find("weight_map") : json.end();
  if (map == json.end() || !map->is_object())
    refuse_file(index, "is not an index of safetensors files: it has no weight_map");
  std::map<std::string, std::string> files;
  for (const auto& [name, file] : map->items()) {
    // Must be a file name, not a path out of the folder.
    if (!file.is_string() || file.get<std::string>().find('/') != std::string::npos)
      refuse_file(index, fmt::format("does not name a file for the tensor '{}'", name));
    files[name] = file.get<std::string>();
  }
  return files;
}

std::vector<CheckpointFile> read_all(const std::vector<fs::path>& paths) {
  std::vector<CheckpointFile> files;
  std::map<std::string, fs::path> holders;
  for (const fs::path& path : paths) {
    files.push_back({path, read_safetensors_header(path)});
    for (const TensorInfo& tensor : files.back().header.tensors) {
      const auto [holder, added] = holders.try_emplace(tensor.name, path);
      if (!added)
        refuse_file(path, fmt::format("the tensor '{}' is in {} too", tensor.name,
                                      holder->second.filename().string()));
    }
  }
  return files;
}

std::vector<CheckpointFile> read_indexed(const fs::path& index) {
  const auto index_entries = read_index(index);
  std::set<std::string> names;
  for (const auto& [tensor, file] : index_entries) names.insert(file);
  std::vector<fs::path> paths;
  for (const std::string& name : names) {
    paths.push_back(index.parent_path() / name);
    if (!fs::exists(paths.back()))
      refuse_file(index, fmt::format("the file {} is missing", name), "download it again");
  }
  std::vector<CheckpointFile> files = read_all(paths);
  std::set<std::pair<std::string, std::string>> present;
  for (const CheckpointFile& file : files)
    for (const TensorInfo& tensor : file.header.tensors)
      present.emplace(tensor.name, file.path.filename().string());
  for (const auto& item : index_entries)
    if (!present.contains(item))
      refuse_file(index, fmt::format("the tensor '{}' is not in {}", item.first, item.second));
  return files;
}

fs::path hub_cache(const Environment& environment) {
  if (const auto folder = environment.find("HF_HUB_CACHE")) return expand_home(*folder, environment);
  if (const auto home = environment.find("HF_HOME")) return expand_home(*home, environment) / "hub";
  const std::string cache = environment.get("XDG_CACHE_HOME", "~/.cache");
  return expand_home(cache, environment) / "huggingface" / "hub";
}

}  // namespace

std::vector<CheckpointFile> read_checkpoint(const fs::path& model) {
  if (!fs::is_directory(model)) return read_all({model});
  const std::vector<fs::path> indices = files_ending(model, ".safetensors.index.json");
  if (!indices.empty()) return read_indexed(indices.front());
  if (fs::exists(model / "model.safetensors")) return read_all({model / "model.safetensors"});
  return read_all(files_ending(model, ".safetensors"));
}

std::vector<fs::path> paths_of_weights(const fs::path& model) {
  std::vector<fs::path> paths = {model};
  if (!fs::is_directory(model)) return paths;
  for (const std::string_view end : {".safetensors", ".safetensors.index.json", ".distcp"})
    std::ranges::move(files_ending(model, end), std::back_inserter(paths));
  paths.push_back(model / kDcpMetadataFile);
  return paths;
}

fs::path find_model(const std::string& name, const Environment& environment) {
  if (fs::exists(name)) return name;
  std::string folder = "models--" + name;
  for (std::size_t slash = folder.find('/'); slash != std::string::npos; slash = folder.find('/'))
    folder.replace(slash, 1, "--");
  const fs::path cached = hub_cache(environment) / folder;
  const fs::path reference = cached / "refs" / "main";
  if (fs::is_regular_file(reference)) {
    const fs::path snapshot = cached / "snapshots" / std::string(trim(read_file(reference, 4096)));
    if (fs::is_directory(snapshot)) return snapshot;
  }
  throw Error({.what = "no such file or folder, and no such model in the hub's cache",
               .where = name,
               .hint = fmt::format("acc downloads nothing; `hf download {}` does", name)});
}

}  // namespace acc::launcher
