// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <filesystem>
#include <nlohmann/json.hpp>
#include <vector>

#include "acc/formats/safetensors.hpp"

namespace acc::launcher {

/// The tensors of the base model that a config.json describes, for the families that acc knows (llama,
/// mistral, qwen2, gpt2, bert). Throws Error{config} naming the file for another family, or if a size is
/// missing.
std::vector<TensorInfo> tensors_of_config(const nlohmann::json& config, const std::filesystem::path& file);

}  // namespace acc::launcher
