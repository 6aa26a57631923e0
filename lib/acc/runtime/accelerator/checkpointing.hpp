// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <filesystem>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "acc/runtime/accelerator/preparation.hpp"
#include "acc/runtime/accelerator/prepared.hpp"
#include "acc/runtime/checkpoint/background_save.hpp"
#include "acc/runtime/checkpoint/checkpoint.hpp"
#include "acc/runtime/checkpoint/memory_snapshots.hpp"
#include "acc/runtime/checkpoint/model_state.hpp"
#include "acc/runtime/checkpoint/tensor_copies.hpp"

namespace acc::detail {

/// The content of a checkpoint: everything that was prepared, and the registered objects, by reference.
CheckpointContent content_of(const Prepared& prepared, const std::vector<Stateful>& registered,
                             int num_processes);

/// All processes, from the view of this one.
SavingProcesses processes_of(const PartialState& state);

/// Hooks of one kind, in the order in which they were added.
template <class Hook>
class Hooks {
 public:
  HookHandle add(Hook hook) {
    const std::size_t key = next_++;
    hooks_->emplace(key, std::move(hook));
    return HookHandle([hooks = std::weak_ptr(hooks_), key] {
      if (const auto all = hooks.lock()) all->erase(key);
    });
  }

  std::vector<Hook> all() const {
    std::vector<Hook> list;
    for (const auto& [key, hook] : *hooks_) list.push_back(hook);
    return list;
  }

 private:
  std::shared_ptr<std::map<std::size_t, Hook>> hooks_ = std::make_shared<std::map<std::size_t, Hook>>();
  std::size_t next_ = 0;
};

/// The objects and hooks that were registered for checkpoints.
struct CheckpointRegistry {
  std::vector<Stateful> objects = {};
  Hooks<SaveStatePreHook> save_hooks = {};
  Hooks<LoadStatePreHook> load_hooks = {};
};

/// What saves beside the training need, and keep for the next one.
struct SavesBesideTraining {
  /// Null before the first.
  std::shared_ptr<ProcessGroup> group = {};
  TensorCopies copies = {};  ///< The memory of the state that is being written.
  BackgroundSave thread = {};

  /// Frees what the next save needs again.
  void free_memory() {
    copies = {};
    group.reset();
  }
};

/// The part of an Accelerator that saves and loads what was prepared. See the Accelerator's functions of the
/// same names.
class Checkpointing {
 public:
  /// `state` and `preparation` must outlive this object.
  Checkpointing(const PartialState& state, Preparation& preparation)
      : state_(state), preparation_(preparation) {}

  bool should_save_model() const;
  void save(const PtValue& value, const std::filesystem::path& file) const;
  void save_model(const torch::nn::Module& module, const std::filesystem::path& path,
                  std::string_view max_shard_size) const;
  NamedTensors state_dict(const torch::nn::Module& module) const;
  IncompatibleKeys load_model(torch::nn::Module& module, const std::filesystem::path& path,
                              bool strict) const;
  std::filesystem::path save_state(const std::optional<std::filesystem::path>& folder,
                                   const SaveStateOptions& options);
  void save_state(InMemory where, const std::optional<std::filesystem::path>& disk,
                  const SaveStateOptions& options);
  void wait_for_save();
  // Another training begins.
  void free_memory();
  void load_state(const std::optional<std::filesystem::path>& folder);
  bool resume();
  void register_for_checkpointing(Stateful object) { registry_.objects.push_back(std::move(object)); }
  HookHandle register_save_state_pre_hook(SaveStatePreHook hook);
  HookHandle register_load_state_pre_hook(LoadStatePreHook hook);

 private:
  // Together: the number of the next checkpoint, that of the main process. Others may not see its disk.
  int next_iteration(const SavingProcesses& processes);
  // The folder of numbered checkpoints; empty without automatic naming.
  std::filesystem::path numbered_folder();
  // The folder to save to: `folder`, or that of the next number. Together: throws when that number exists.
  std::filesystem::path folder_of_next(const std::optional<std::filesystem::path>& folder,
                                       const SavingProcesses& processes);
  // The processes, with a process group that the training does not use.
  SavingProcesses processes_beside_training(SavesBesideTraining& saves) const;
  // Together: what is saved now.
  CheckpointContent content();
  void load(const std::filesystem::path& folder);
  // On the main process.
  void warn_once(const std::string& text);

  const PartialState& state_;
  Preparation& preparation_;
  CheckpointRegistry registry_ = {};
  MemorySnapshots snapshots_ = {};
  std::atomic<bool> has_warned_ = false;
  SavesBesideTraining to_disk_ = {};
  SavesBesideTraining to_memory_ = {};
};

}  // namespace acc::detail
