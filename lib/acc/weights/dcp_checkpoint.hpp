// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "acc/formats/safetensors.hpp"

namespace acc::launcher {

/// A part of a tensor: its offsets in the tensor, and the place of its bytes, a torch.save file within a
/// file.
struct DcpChunk {
  std::vector<std::int64_t> offsets = {};
  std::vector<std::int64_t> sizes = {};
  std::filesystem::path file = {};
  std::uint64_t begin = 0;
  std::uint64_t length = 0;
};

struct DcpTensor {
  /// Its bytes begin at 0.
  TensorInfo info = {};
  std::vector<DcpChunk> chunks = {};
};

/// Whether the folder is a checkpoint of torch.distributed.checkpoint.
bool is_dcp_checkpoint(const std::filesystem::path& folder);

/// The tensors of such a checkpoint by name, without a top-level key that all share, such as `model`, as in
/// accelerate's merge-weights. Executes nothing in it. Throws Error{config} if it is damaged, or has more
/// than weights.
std::vector<DcpTensor> read_dcp_checkpoint(const std::filesystem::path& folder);

/// The bytes of the whole tensor. Throws Error naming a missing or damaged file.
std::string read_dcp_tensor(const DcpTensor& tensor);

}  // namespace acc::launcher
