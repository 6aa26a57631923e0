// SPDX-License-Identifier: Apache-2.0
#include "pretrained.hpp"

#include <nlohmann/json.hpp>

#include "acc/base/files.hpp"
#include "acc/checkpoint.hpp"
#include "acc/error.hpp"

namespace fs = std::filesystem;

PretrainedConfig read_pretrained_config(const fs::path& weights) {
  PretrainedConfig config;
  const fs::path file = (fs::is_directory(weights) ? weights : weights.parent_path()) / "config.json";
  if (!fs::exists(file)) return config;
  std::string key;
  try {
    const auto content = nlohmann::json::parse(acc::read_file(file));
    config.architecture = content.value(key = "architecture", config.architecture);
    if (content.contains(key = "pretrained_cfg")) {
      const auto& pretrained = content[key];
      config.normalize.mean = pretrained.value(key = "mean", config.normalize.mean);
      config.normalize.std = pretrained.value(key = "std", config.normalize.std);
    }
  } catch (const nlohmann::json::exception&) {
    throw acc::Error({.kind = acc::ErrorKind::config,
                      .what = key.empty() ? "is not JSON" : "has another type than in timm's files",
                      .where = file.string() + (key.empty() ? "" : ": " + key)});
  }
  return config;
}

bool load_pretrained(ResNetDImpl& net, const fs::path& weights) {
  acc::NamedTensors state = acc::read_weights(weights);
  const auto head = acc::state_of(*net.fc);
  bool is_same = true;
  for (const auto& [name, tensor] : head) {
    const auto theirs = state.find("fc." + name);
    is_same = is_same && theirs != state.end() && theirs->second.sizes() == tensor.sizes();
  }
  // The values of the network's own classifier are put in the place of another one's.
  if (!is_same) {
    for (const auto& [name, tensor] : head) state.insert_or_assign("fc." + name, tensor.clone());
  }
  acc::load_state(net, state, weights);
  return is_same;
}
