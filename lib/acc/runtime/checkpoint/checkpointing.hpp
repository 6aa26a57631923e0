// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <filesystem>
#include <optional>
#include <string_view>
#include <utility>

#include "acc/runtime/checkpoint/checkpoint_registry.hpp"
#include "acc/runtime/checkpoint/model_file.hpp"
#include "acc/runtime/preparation.hpp"

namespace acc {

/// The part of an Accelerator that saves and loads what was prepared. What each function promises stands at
/// the Accelerator's of the same name.
class Checkpointing {
 public:
  /// Both outlive this.
  Checkpointing(const PartialState& state, Preparation& preparation)
      : state_(state), preparation_(preparation) {}

  void save(const PtValue& value, const std::filesystem::path& file) const;
  void save_model(const torch::nn::Module& module, const std::filesystem::path& place,
                  std::string_view max_shard_size) const;
  IncompatibleKeys load_model(torch::nn::Module& module, const std::filesystem::path& place,
                              bool strict) const;
  std::filesystem::path save_state(const std::optional<std::filesystem::path>& folder,
                                   bool safe_serialization);
  void load_state(const std::optional<std::filesystem::path>& folder);
  void register_for_checkpointing(Stateful object) { registry_.objects.push_back(std::move(object)); }
  HookHandle register_save_state_pre_hook(SaveStatePreHook hook);
  HookHandle register_load_state_pre_hook(LoadStatePreHook hook);

 private:
  // Where numbered checkpoints are; empty without automatic naming.
  std::filesystem::path numbered_folder();
  void make_room(const std::filesystem::path& folder, const SavingProcesses& processes);

  const PartialState& state_;
  Preparation& preparation_;
  CheckpointRegistry registry_ = {};
};

}  // namespace acc
