// SPDX-License-Identifier: Apache-2.0
#pragma once

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

namespace detail {

/// The tensors without those that share memory with an earlier one, as tied weights do: safetensors files
/// store only the first.
OrderedTensors without_ties(const OrderedTensors& tensors);

/// Removes the prefix `module.` if all names have it, but not the module's.
NamedTensors named_as_in(const torch::nn::Module& module, NamedTensors state);

/// Whether elements share memory, as in what expand() returns: LibTorch refuses to write to it.
bool is_expanded(const at::Tensor& tensor);

/// Throws Error{usage} with every tensor of `state` that is shaped otherwise than the module's, or that
/// cannot be written to the module's: that is sparse, or expanded with other values; and, if `strict`, with
/// every missing and unknown one; otherwise returns those. `where` is its file. The tensors need no memory;
/// of those that have some, the names of one tied weight must have one value.
IncompatibleKeys require_fitting(const torch::nn::Module& module, const NamedTensors& state,
                                 const std::filesystem::path& where, bool strict = true);

/// Checks that `state` fits the module, see require_fitting; the returned function copies it into the module.
std::function<void()> plan_model_load(torch::nn::Module& module, NamedTensors state,
                                      const std::filesystem::path& where, bool strict = true);

/// Together, if tensors are sharded: each of them in float32 and with all values, as new tensors. Where
/// `keep` is false they are left out, and no more than one unit is in memory at once.
OrderedTensors with_full_values(OrderedTensors tensors, bool keep);

}  // namespace detail

}  // namespace acc
