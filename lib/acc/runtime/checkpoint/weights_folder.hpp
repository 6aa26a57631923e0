// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "acc/runtime/checkpoint/model_file.hpp"

namespace acc {

/// A file of a model's weights before it is written.
struct WeightShard {
  std::string name = {};
  OrderedTensors tensors = {};
};

/// How accelerate's save_model lays tensors out in files of at most `most` bytes, in their order (a larger
/// one has a file of its own): one `model.safetensors`, or `model-00001-of-0000N.safetensors`. Tied weights
/// come once.
std::vector<WeightShard> plan_shards(const OrderedTensors& tensors, std::uint64_t most);

/// `model.safetensors.index.json` of several shards; empty for one.
std::string shard_index(const std::vector<WeightShard>& shards);

/// Writes the model's weights into `folder`, which is made where it is missing, in files of at most `most`
/// bytes, each in one step; then removes what an earlier save left there in other files. Throws
/// Error{system}.
void save_weights(const torch::nn::Module& module, const std::filesystem::path& folder, std::uint64_t most);

/// The weights in a file (safetensors, or else a state_dict of torch.save), or in a folder of Python's or
/// ours: `model.safetensors`, its shards, `pytorch_model.bin` or its shards, the first that there is. Tensors
/// are read when they are used. Throws Error naming the file that is missing or damaged.
NamedTensors read_weights(const std::filesystem::path& path);

}  // namespace acc
