// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "acc/formats/dcp_metadata.hpp"
#include "acc/formats/safetensors.hpp"

namespace acc::launcher {

/// A tensor of a sharded checkpoint as it will be in a safetensors file, where its bytes begin at 0.
struct DcpWeight {
  TensorInfo info = {};
  DcpTensor tensor = {};
};

/// Whether the folder is a checkpoint of torch.distributed.checkpoint.
bool is_dcp_checkpoint(const std::filesystem::path& folder);

/// The tensors of such a checkpoint by name, without a top-level key that all share, such as `model`, as in
/// accelerate's merge-weights. Throws Error{config} if it is damaged, or has more than weights.
std::vector<DcpWeight> read_dcp_checkpoint(const std::filesystem::path& folder);

/// The bytes of the whole tensor. Throws Error naming a missing or damaged file.
std::string read_dcp_weight(const std::filesystem::path& folder, const DcpWeight& weight);

}  // namespace acc::launcher
