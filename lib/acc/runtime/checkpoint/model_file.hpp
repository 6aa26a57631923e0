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

using OrderedTensors = std::vector<std::pair<std::string, at::Tensor>>;

/// The parameters and buffers under the names of Python's state_dict, in its order. They share the module's
/// memory.
OrderedTensors ordered_state_of(const torch::nn::Module& module);

/// The same by name.
NamedTensors state_of(const torch::nn::Module& module);

/// Without those that are one already there under another name, as a tied weight: files of safetensors have
/// the first alone.
OrderedTensors without_ties(const OrderedTensors& tensors);

/// Names by which a model and the weights that it was given differ, as PyTorch's load_state_dict has them.
struct IncompatibleKeys {
  /// The model's, of which the weights have none: they keep their values.
  std::vector<std::string> missing_keys = {};
  /// The weights', which the model lacks.
  std::vector<std::string> unexpected_keys = {};

  bool operator==(const IncompatibleKeys&) const = default;
};

/// The names in which `state` is not the module's. Names that all begin with `module.`, as Python's
/// DistributedDataParallel saves them, fit too, and a tied weight may come under one of its names.
IncompatibleKeys compare_keys(const torch::nn::Module& module, const NamedTensors& state);

/// Checks that `state` is the module's; the function that it gives back copies it into the module. Throws
/// Error{usage} with every differently shaped tensor and, if `strict`, every missing and unknown one. `where`
/// is the file that it came from.
std::function<void()> plan_model_load(torch::nn::Module& module, NamedTensors state,
                                      const std::filesystem::path& where, bool strict = true);

/// The same at once; when it throws, it has changed nothing.
IncompatibleKeys load_state(torch::nn::Module& module, const NamedTensors& state,
                            const std::filesystem::path& where, bool strict = true);

/// The module's state as a safetensors file that Python loads, replaced in one step.
void save_model_file(const torch::nn::Module& module, const std::filesystem::path& file);
void write_model_file(const OrderedTensors& state, const std::filesystem::path& file);

}  // namespace acc
