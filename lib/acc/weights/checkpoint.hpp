// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "acc/base/environment.hpp"
#include "acc/formats/safetensors.hpp"

namespace acc::launcher {

/// One file of a checkpoint with its header.
struct CheckpointFile {
  std::filesystem::path path = {};
  SafetensorsHeader header = {};
};

/// The safetensors files of a folder (those that its `*.safetensors.index.json` names, else
/// `model.safetensors`, else all), or the one file itself, with their headers; empty if there is none. Throws
/// Error{config} if the index names a missing file or tensor, or a tensor is in two files.
std::vector<CheckpointFile> read_checkpoint(const std::filesystem::path& model);

/// The folder of a model and the files of weights in it, or the one file: what has changed while it was read
/// if it was being saved, see ReplacementCheck.
std::vector<std::filesystem::path> paths_of_weights(const std::filesystem::path& model);

/// Finds the model `name` on this machine: a path, or `owner/name` in the hub's cache (HF_HUB_CACHE, HF_HOME,
/// ~/.cache/huggingface). Throws Error{usage} saying how to download it if it is not there: acc downloads
/// nothing.
std::filesystem::path find_model(const std::string& name, const Environment& environment);

}  // namespace acc::launcher
