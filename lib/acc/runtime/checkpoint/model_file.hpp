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

/// Checks that `state` is the module's; the function that it gives back copies it into the module. Names that
/// all begin with `module.`, as Python's DistributedDataParallel saves them, fit too. Throws Error{usage}
/// with every missing, unknown and differently shaped tensor. `where` is the file that it came from.
std::function<void()> plan_model_load(torch::nn::Module& module, NamedTensors state,
                                      const std::filesystem::path& where);

/// The same at once; when it throws, it has changed nothing.
void load_state(torch::nn::Module& module, const NamedTensors& state, const std::filesystem::path& where);

/// The module's state as a safetensors file that Python loads, replaced in one step.
void save_model_file(const torch::nn::Module& module, const std::filesystem::path& file);
void write_model_file(const OrderedTensors& state, const std::filesystem::path& file);

}  // namespace acc
