// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <vector>

#include "acc/runtime/checkpoint/safetensors.hpp"
#include "acc/runtime/checkpoint/saving_processes.hpp"
#include "acc/runtime/checkpoint/stateful.hpp"

namespace torch::nn {
class Module;
}
namespace torch::optim {
class Optimizer;
}

namespace acc {

/// Called before a checkpoint's weights are written, on every process. May change them, or take some out, as
/// when it writes them itself: `folder` is where the checkpoint is being made.
using SaveStatePreHook =
    std::function<void(std::vector<NamedTensors>& weights, const std::filesystem::path& folder)>;

/// Called before a checkpoint is read, on every process. Models that it takes out are not loaded.
using LoadStatePreHook =
    std::function<void(std::vector<torch::nn::Module*>& models, const std::filesystem::path& folder)>;

/// What goes into a checkpoint, of each kind in the order of preparation.
struct CheckpointContent {
  std::vector<torch::nn::Module*> models = {};
  std::vector<torch::optim::Optimizer*> optimizers = {};
  std::vector<Stateful> schedulers = {};
  std::vector<Stateful> loaders = {};
  std::optional<Stateful> scaler = {};
  std::vector<Stateful> registered = {};
  /// How the models' gradients are laid out in messages, of which sums depend in their last bit: none for a
  /// model that is not averaged, or has not been yet.
  std::vector<Stateful> gradient_buckets = {};
  /// Of the accumulation.
  std::int64_t step = 0;
  /// Whether gradients have been gathered for a step that is still to come; each process saves its own.
  bool accumulates = false;
  int num_processes = 1;
};

struct SaveCheckpointOptions {
  /// Weights as safetensors, else as torch.save writes them.
  bool safe_serialization = true;
  /// The first process of each machine writes everything, not of the first machine alone.
  bool save_on_each_node = false;
  std::vector<SaveStatePreHook> hooks = {};
};

/// Together: writes a checkpoint that accelerate's load_state takes, in the place of `folder` in one step:
/// whenever a process is killed, `folder` is what it was before or the whole new checkpoint. Files there that
/// are no part of a checkpoint stay. Throws the same on every process when one of them cannot write.
void save_checkpoint(const std::filesystem::path& folder, const CheckpointContent& content,
                     const SavingProcesses& processes, const SaveCheckpointOptions& options = {});

/// Loads a checkpoint of ours or of accelerate's into the same objects, and gives back the step of the
/// accumulation. A process that has no random states in it, since others saved it, keeps its own; gradients
/// of an unfinished accumulation are dealt out so that their mean over the processes stays. Throws
/// Error naming the file that is missing or damaged, or with all weights that do not fit; models and
/// optimizers are then unchanged.
std::optional<std::int64_t> load_checkpoint(const std::filesystem::path& folder,
                                            const CheckpointContent& content, int process,
                                            const std::vector<LoadStatePreHook>& hooks = {});

}  // namespace acc
