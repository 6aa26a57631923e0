// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "acc/runtime/checkpoint/model_state.hpp"

namespace torch::nn {
class Module;
}

namespace acc {

/// Atomically replaces `file` with the module's state as a safetensors file that Python can load. Throws
/// Error{usage} for a sharded module, as save_weights: Accelerator::save_model gathers it.
void save_model_file(const torch::nn::Module& module, const std::filesystem::path& file);

/// Writes the model's weights into `folder`, which is created if missing, in files of at most `max_bytes`
/// bytes, and replaces those of an earlier save: a save that fails or is killed leaves the earlier ones, or
/// none, but never shards of both. Throws Error{system}.
void save_weights(const torch::nn::Module& module, const std::filesystem::path& folder,
                  std::uint64_t max_bytes);

/// Reads the weights in a file (safetensors, or a state_dict of torch.save), in the shards that an index
/// names, or in a folder that acc or Python wrote: `model.safetensors`, its shards, `pytorch_model.bin` or
/// its shards, or accelerate's `pytorch_model_fsdp.bin`, whichever is found first. The files are those of one
/// save, also beside a process that saves. Tensors are read lazily, when they are used. Throws Error naming
/// the file that is missing or damaged.
NamedTensors read_weights(const std::filesystem::path& path);

namespace detail {

/// acc::save_model_file with a state.
void write_model_file(const OrderedTensors& state, const std::filesystem::path& file);

/// acc::save_weights with a state.
void write_weights(const OrderedTensors& state, const std::filesystem::path& folder, std::uint64_t max_bytes);

/// A file of a model's weights that is to be written.
struct WeightShard {
  std::string name = {};
  OrderedTensors tensors = {};
};

/// Distributes tensors in their order over files of at most `max_bytes`, as accelerate's save_model (a larger
/// tensor has a file of its own): one `model.safetensors`, or `model-00001-of-0000N.safetensors`. Tied
/// weights are written once.
std::vector<WeightShard> plan_shards(const OrderedTensors& tensors, std::uint64_t max_bytes);

/// The content of `model.safetensors.index.json` for several shards; empty for one.
std::string shard_index(const std::vector<WeightShard>& shards);

}  // namespace detail

}  // namespace acc
