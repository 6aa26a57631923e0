// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "acc/runtime/checkpoint/safetensors.hpp"

namespace torch::nn {
class Module;
}

namespace acc {

/// Tensors by name, in an order of their own.
using OrderedTensors = std::vector<std::pair<std::string, at::Tensor>>;

/// The parameters and buffers under the names of Python's state_dict, in its order. They share the module's
/// memory.
OrderedTensors ordered_state_of(const torch::nn::Module& module);

/// The same, sorted by name.
NamedTensors state_of(const torch::nn::Module& module);

/// The names in which a model and the weights to load differ, as in PyTorch's load_state_dict.
struct IncompatibleKeys {
  /// Names of the model that the weights lack: these tensors keep their values.
  std::vector<std::string> missing_keys = {};
  /// Names of the weights that the model lacks.
  std::vector<std::string> unexpected_keys = {};

  bool operator==(const IncompatibleKeys&) const = default;
};

/// Compares the names of `state` with the module's. Names that all begin with `module.`, as Python's
/// DistributedDataParallel saves them, are accepted, and a tied weight may have any of its names.
IncompatibleKeys compare_keys(const torch::nn::Module& module, const NamedTensors& state);

/// Checks that `state` fits the module and copies it there; returns the names that only one of the two has.
/// If it throws, the module is unchanged.
IncompatibleKeys load_state(torch::nn::Module& module, const NamedTensors& state,
                            const std::filesystem::path& where, bool strict = true);

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

/// The tensors without those that share memory with an earlier one, as tied weights do: safetensors files
/// store only the first.
OrderedTensors without_ties(const OrderedTensors& tensors);

/// Removes the prefix `module.` if all names have it, but not the module's.
NamedTensors named_as_in(const torch::nn::Module& module, NamedTensors state);

/// Throws Error{usage} with every tensor of `state` that is shaped otherwise than the module's and, if
/// `strict`, every missing and unknown one; otherwise returns those. `where` is its file. The tensors need no
/// memory; of those that have some, the names of one tied weight must have one value.
IncompatibleKeys require_fitting(const torch::nn::Module& module, const NamedTensors& state,
                                 const std::filesystem::path& where, bool strict = true);

/// Checks that `state` fits the module, see require_fitting; the returned function copies it into the module.
std::function<void()> plan_model_load(torch::nn::Module& module, NamedTensors state,
                                      const std::filesystem::path& where, bool strict = true);

/// Together, if tensors are sharded: each of them in float32 and with all values, as new tensors. Where
/// `keep` is false they are left out, and no more than one unit is in memory at once.
OrderedTensors with_full_values(OrderedTensors tensors, bool keep);

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
