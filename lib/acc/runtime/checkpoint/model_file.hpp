// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <filesystem>

#include "acc/runtime/checkpoint/safetensors.hpp"

namespace torch::nn {
class Module;
}

namespace acc {

/// The parameters and buffers under the names of Python's state_dict. They share the module's memory.
NamedTensors state_of(const torch::nn::Module& module);

/// Copies `state` into the module. Throws Error{usage} with every missing, unknown and differently shaped
/// tensor, and then has changed nothing. `where` is the file that it came from.
void load_state(torch::nn::Module& module, const NamedTensors& state, const std::filesystem::path& where);

/// The module's state as a safetensors file that Python loads, replaced in one step.
void save_model_file(const torch::nn::Module& module, const std::filesystem::path& file);
void load_model_file(torch::nn::Module& module, const std::filesystem::path& file);

}  // namespace acc
