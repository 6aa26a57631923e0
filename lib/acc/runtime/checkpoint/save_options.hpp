// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <filesystem>
#include <functional>
#include <utility>
#include <vector>

#include "acc/runtime/checkpoint/safetensors.hpp"

namespace torch::nn {
class Module;
}

namespace acc {

/// Called on every process before a checkpoint's weights are written. It may change the weights, or remove
/// those that it writes itself; parameters of sharded models are there only where they are written, and no
/// model is if they are written in shards. `folder` is the folder in which the checkpoint is being written.
using SaveStatePreHook =
    std::function<void(std::vector<NamedTensors>& weights, const std::filesystem::path& folder)>;

/// Called on every process before a checkpoint is read. Models that the hook removes are not loaded.
using LoadStatePreHook =
    std::function<void(std::vector<torch::nn::Module*>& models, const std::filesystem::path& folder)>;

/// A registered hook. It stays registered when the handle is destroyed.
class HookHandle {
 public:
  explicit HookHandle(std::function<void()> remove) : remove_(std::move(remove)) {}

  /// Removes the hook; a second call does nothing.
  void remove() { remove_(); }

 private:
  std::function<void()> remove_;
};

/// How save_checkpoint writes.
struct SaveCheckpointOptions {
  /// Writes weights as safetensors; off: as torch.save does.
  bool safe_serialization = true;
  /// The first process of each machine writes the shared files, not only that of the first machine.
  bool save_on_each_node = false;
  /// Buffers are the main process's in all files; those of other machines may have values of their own.
  bool buffers_of_main = false;
  /// Writes models and optimizers in shards, each process its own, as accelerate's SHARDED_STATE_DICT.
  bool in_shards = false;
  std::vector<SaveStatePreHook> hooks = {};  ///< Called before weights are written, in this order.
  /// See SaveStateOptions.
  std::function<void(const std::filesystem::path& folder)> add_files = {};
};

/// Where Accelerator::save_state saves: in the memory of each machine, which outlives the processes of a job
/// that was started with `--memory-checkpoints`.
struct InMemory {};
inline constexpr InMemory in_memory;  ///< See InMemory.

/// How Accelerator::save_state saves.
struct SaveStateOptions {
  /// Writes weights as safetensors; off: as torch.save does.
  bool safe_serialization = true;
  /// Copies the state and returns; a thread writes it while the training goes on. So it is in memory always.
  bool background = false;
  /// Called on every process, before save_state returns, with the folder in which the checkpoint is being
  /// written: what the program adds to it.
  std::function<void(const std::filesystem::path& folder)> add_files = {};
  /// Called on every process when the checkpoint is complete, with `background` on that thread: it must not
  /// call functions that are marked "together". What it throws on one process is the error of the save on
  /// all.
  std::function<void()> on_saved = {};
};

}  // namespace acc
