// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <filesystem>
#include <functional>
#include <string>
#include <vector>

#include "acc/runtime/checkpoint/checkpoint_content.hpp"
#include "acc/runtime/checkpoint/dcp_checkpoint.hpp"
#include "acc/runtime/checkpoint/model_state.hpp"

namespace acc::detail {

/// A model or an optimizer's state in a checkpoint that all processes write together, each its shards, into a
/// folder in that of the checkpoint, see save_sharded.
struct CheckpointShards {
  std::string folder = {};  ///< Its name.
  ShardedState state = {};  ///< What this process writes; it shares the memory of what is saved.
};

/// The models and optimizers, as accelerate saves them with SHARDED_STATE_DICT. What every process has as a
/// whole is in the main process's alone. Throws Error{usage} for an optimizer whose parameters are not those
/// of one prepared model.
std::vector<CheckpointShards> shards_of(const CheckpointContent& content, bool is_main);

/// What a checkpoint has of a model.
struct PlannedModel {
  /// The names that only one of the two has.
  IncompatibleKeys keys = {};
  /// Loads it and cannot fail. Together for a sharded model.
  std::function<void()> load = {};
};

/// Reads what this process keeps of a model from the folder that acc or Python wrote with its shards. Throws
/// what plan_model_load throws for weights that do not fit.
PlannedModel plan_model_shards(const torch::nn::Module& module, const std::filesystem::path& folder,
                               bool strict = true);

/// The same for the state of an optimizer of `content`, as plan_optimizer_load.
std::function<void()> plan_optimizer_shards(const CheckpointContent& content, std::size_t optimizer,
                                            const std::filesystem::path& folder);

/// Whether something is in the folder `shards`, in a checkpoint that may have it in `file` instead. Throws
/// Error{config} for a checkpoint that has both.
bool is_in_shards(const std::filesystem::path& shards, const std::filesystem::path& file);

/// The folder of a model in shards in a checkpoint; empty if it has none. Throws what is_in_shards throws.
std::filesystem::path model_shards_in(const std::filesystem::path& checkpoint, std::size_t model);

/// The folder of a model in shards at `path`, which is that of a checkpoint, or the model's own; empty if
/// there is none. Throws what is_in_shards throws.
std::filesystem::path folder_of_model_shards(const std::filesystem::path& path, std::size_t model);

}  // namespace acc::detail
