// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "acc/base/environment.hpp"
#include "acc/formats/safetensors.hpp"

namespace acc::launcher {

/// One file of a checkpoint with its head.
struct CheckpointFile {
  std::filesystem::path path = {};
  SafetensorsHeader header = {};
};

/// The safetensors files of a folder (those that its `*.safetensors.index.json` names, else
/// `model.safetensors`, else all), or the one file itself, with their heads; empty when there is none.
/// Throws Error{config} when the index names a file or a tensor that is not there, or a tensor is in two
/// files.
std::vector<CheckpointFile> read_checkpoint(const std::filesystem::path& model);

/// Where the model `name` is on this machine: a path, or `owner/name` in the hub's cache (HF_HUB_CACHE,
/// HF_HOME,
/// ~/.cache/huggingface). Throws Error{usage} saying how to get it when it is nowhere: acc downloads nothing.
std::filesystem::path find_model(const std::string& name, const Environment& environment);

}  // namespace acc::launcher
