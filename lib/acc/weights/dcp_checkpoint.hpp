// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "acc/formats/safetensors.hpp"

namespace acc::launcher {

/// A part of a tensor: where in the tensor it lies, and where its bytes are, as a file of torch.save within a
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

/// The tensors of such a checkpoint, by their names; a level that all share, as `model`, is left out, as in
/// accelerate's merge-weights. Nothing in it is executed. Throws Error{config} for a damaged one, or one with
/// more than weights.
std::vector<DcpTensor> read_dcp_checkpoint(const std::filesystem::path& folder);

/// The whole tensor's bytes. Throws Error naming the file that is missing or damaged.
std::string read_dcp_tensor(const DcpTensor& tensor);

}  // namespace acc::launcher
