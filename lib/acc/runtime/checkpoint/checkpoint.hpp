// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "acc/runtime/checkpoint/safetensors.hpp"
#include "acc/runtime/checkpoint/stateful.hpp"

namespace torch::nn {
class Module;
}
namespace torch::optim {
class Optimizer;
}

namespace acc {

class ProcessGroup;

/// The processes that write a checkpoint together, from the view of one of them.
struct SavingProcesses {
  int index = 0;        ///< The rank of this process.
  int local_index = 0;  ///< Its rank on its machine.
  /// Null for one process.
  std::shared_ptr<ProcessGroup> group = {};

  bool is_main() const { return index == 0; }              ///< Whether it is rank 0.
  bool is_local_main() const { return local_index == 0; }  ///< Whether it is the first of its machine.
  /// Whether this process writes the shared files: the first, or the first of each machine.
  bool writes_shared(bool on_each_node) const { return is_main() || (on_each_node && is_local_main()); }
};

namespace detail {

class ShardedOptimizer;

/// Calls `function` and returns when it is done on every process. When it throws on any, `clean_up` is called
/// on all, and this throws when that is done on all: its own error on a process that failed, on the others
/// Error{system} with the text and rank of the first. A program that ends by the error ends its job, and with
/// it processes that still clean up. When a process is lost, nobody waits.
void together(
    const SavingProcesses& processes, const std::function<void()>& function,
    const std::function<void()>& clean_up = [] {});

/// A function, for all processes together, that returns whether its argument is true on any of them.
std::function<bool(bool)> on_any(const SavingProcesses& processes);

}  // namespace detail

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

/// The content of a checkpoint. Objects of one kind are in the order in which they were prepared.
struct CheckpointContent {
  std::vector<torch::nn::Module*> models = {};            ///< Their parameters and buffers.
  std::vector<torch::optim::Optimizer*> optimizers = {};  ///< Their states and options.
  /// For each of `optimizers`, or empty: what it has of sharded models, or null.
  std::vector<std::shared_ptr<detail::ShardedOptimizer>> sharded_optimizers = {};
  std::vector<Stateful> schedulers = {};  ///< Their positions.
  std::vector<Stateful> loaders = {};     ///< Their positions.
  std::optional<Stateful> scaler = {};    ///< The state of fp16's scale.
  std::vector<Stateful> registered = {};  ///< The program's own objects.
  /// The gradient buckets of the models: the last bit of summed gradients depends on them. None for a model
  /// whose gradients are not averaged, or have not been averaged yet.
  std::vector<Stateful> gradient_buckets = {};
  /// The step of the gradient accumulation.
  std::int64_t step = 0;
  /// For each of `optimizers` the rates of its groups before its scheduler changed them, as
  /// torch.optim.lr_scheduler keeps them there; empty for an optimizer without, or if there are none.
  std::vector<std::vector<double>> initial_rates = {};
  /// The processes that load at the same time, since their models are sharded; null: each loads by itself.
  std::shared_ptr<ProcessGroup> loading_group = {};
  /// Whether gradients have been accumulated for a step that has not happened yet; each process saves its
  /// own.
  bool accumulates = false;
  int num_processes = 1;  ///< The processes that save.

  /// The entry of sharded_optimizers, if any.
  std::shared_ptr<detail::ShardedOptimizer> sharded(std::size_t optimizer) const {
    return optimizer < sharded_optimizers.size() ? sharded_optimizers[optimizer] : nullptr;
  }
};

/// How save_checkpoint writes.
struct SaveCheckpointOptions {
  /// Writes weights as safetensors; off: as torch.save does.
  bool safe_serialization = true;
  /// The first process of each machine writes the shared files, not only that of the first machine.
  bool save_on_each_node = false;
  /// Writes models and optimizers in shards, each process its own, as accelerate's SHARDED_STATE_DICT.
  bool in_shards = false;
  std::vector<SaveStatePreHook> hooks = {};  ///< Called before weights are written, in this order.
  /// See SaveStateOptions.
  std::function<void(const std::filesystem::path& folder)> add_files = {};
};

/// How Accelerator::save_state saves.
struct SaveStateOptions {
  /// Writes weights as safetensors; off: as torch.save does.
  bool safe_serialization = true;
  /// Copies the state and returns; a thread writes it while the training goes on.
  bool background = false;
  /// Called on every process, before save_state returns, with the folder in which the checkpoint is being
  /// written: what the program adds to it.
  std::function<void(const std::filesystem::path& folder)> add_files = {};
  /// Called on every process when the checkpoint is complete, with `background` on that thread: it must not
  /// call functions that are marked "together". What it throws on one process is the error of the save on
  /// all.
  std::function<void()> on_saved = {};
};

/// Together: writes a checkpoint that accelerate's load_state can read, and replaces `folder` atomically: if
/// a process is killed at any moment, `folder` is either unchanged or the complete new checkpoint. Files in
/// it that are not part of a checkpoint are kept. Throws on every process when one of them cannot write.
void save_checkpoint(const std::filesystem::path& folder, const CheckpointContent& content,
                     const SavingProcesses& processes, const SaveCheckpointOptions& options = {});

/// Loads a checkpoint of acc or of accelerate into the same objects, and returns the step of the
/// accumulation. What is loaded is of one save, also beside a process that saves to the folder. Models and
/// optimizers may be in files or in shards, whatever they are here: of shards, each process reads the parts
/// that it keeps. A process without random states in the checkpoint keeps its current ones; gradients of an
/// unfinished accumulation are distributed so that their mean over the processes stays the same. Throws Error
/// naming the file that is missing or damaged, or with all weights that do not fit; models and optimizers are
/// then unchanged. With a loading_group it is for all of its processes together, and throws on all of them.
std::optional<std::int64_t> load_checkpoint(const std::filesystem::path& folder,
                                            const CheckpointContent& content, int process,
                                            const std::vector<LoadStatePreHook>& hooks = {});

}  // namespace acc
