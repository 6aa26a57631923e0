// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <filesystem>
#include <string>
#include <variant>
#include <vector>

#include "acc/runtime/checkpoint/checkpoint_content.hpp"
#include "acc/runtime/checkpoint/pt_file.hpp"
#include "acc/runtime/checkpoint/safetensors.hpp"

namespace acc::detail {

/// A file of a checkpoint that has not been written yet.
struct CheckpointFile {
  std::string name = {};
  std::variant<Safetensors, PtValue> content = {};
};

/// The parameters and buffers of a model under the names of its files; they share its memory. Together for a
/// sharded model: its parameters are gathered, see with_full_values.
NamedTensors weights_of(const torch::nn::Module& module, bool keep);

/// The states of the optimizers. Together if some are sharded; the others' states are left out where `keep`
/// is false, too.
std::vector<PtValue> optimizer_states(const CheckpointContent& content, bool keep);

/// The files that all processes share; one process writes them. `weights` are those of the models,
/// `optimizers` their states. The tensors share the memory of the objects that are saved.
std::vector<CheckpointFile> shared_files(const CheckpointContent& content, std::vector<NamedTensors> weights,
                                         std::vector<PtValue> optimizers, bool safe_serialization);

/// The files of this process: its random states, and gradients that it has accumulated.
std::vector<CheckpointFile> own_files(const CheckpointContent& content, int process);

/// Writes the files to `folder`, two at a time. Throws what write_safetensors and write_pt_file throw for the
/// first file that cannot be written.
void write_files(const std::filesystem::path& folder, const std::vector<CheckpointFile>& files);

}  // namespace acc::detail
