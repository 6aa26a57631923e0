// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <filesystem>
#include <optional>
#include <string_view>

#include "acc/runtime/checkpoint/checkpoint_registry.hpp"
#include "acc/runtime/checkpoint/model_file.hpp"
#include "acc/runtime/preparation.hpp"

namespace acc {

/// The part of an Accelerator that saves and loads what was prepared.
class Checkpointing : public Preparation {
 public:
  /// The main process, with save_on_each_node the first of each machine, writes numbers, texts, tensors, and
  /// lists and dicts of them, as torch.save: read_pt_file reads it, and Python with weights_only=True. The
  /// others return at once. Throws what write_pt_file throws, and Error{system} when the file's folder is
  /// missing.
  void save(const PtValue& value, const std::filesystem::path& file) const;

  /// The same process writes the model as safetensors with the names of Python's state_dict: to one file when
  /// `place` ends in `.safetensors`, else into that folder, in files of at most `max_shard_size` with an
  /// index, and removes what an earlier save left there. The others return at once. A missing folder is made;
  /// that of a file must be there. Throws Error{system} when it cannot.
  template <class Module>
  void save_model(const Model<Module>& model, const std::filesystem::path& place,
                  std::string_view max_shard_size = "10GB") const {
    save_module(*model.module(), place, max_shard_size);
  }

  /// Every process reads the weights in a file or folder of save_model's or of Python's, see read_weights.
  /// Gives back the names that only one of the two has, as PyTorch's load_state_dict; they are errors unless
  /// `strict` is off, as for a backbone under a new head. Throws Error with all names and shapes that do not
  /// match; the model is then unchanged.
  template <class Module>
  IncompatibleKeys load_model(Model<Module>& model, const std::filesystem::path& place,
                              bool strict = true) const {
    return load_module(*model.module(), place, strict);
  }

  /// Together: writes everything that was prepared, the registered objects, and each process's random
  /// numbers, as save_checkpoint has it, and gives back the folder. With the project's
  /// automatic_checkpoint_naming that is `checkpoints/checkpoint_<iteration>` below its folder, whatever
  /// `folder` is; older ones go, once the new one is whole, so that total_limit stay. Throws Error{usage}
  /// without a folder, and when a numbered one is there already.
  std::filesystem::path save_state(const std::optional<std::filesystem::path>& folder = {},
                                   bool safe_serialization = true);

  /// Loads such a checkpoint, ours or Python's, into what was prepared and registered, see load_checkpoint.
  /// Without a folder: the newest of the project's. Automatic naming then goes on after the newest.
  void load_state(const std::optional<std::filesystem::path>& folder = {});

  /// The objects' states go into checkpoints; they must outlive the Accelerator, and be registered in the
  /// same order when one is loaded.
  template <class... Objects>
  void register_for_checkpointing(Objects&... objects) {
    (registry_.objects.push_back(stateful(objects)), ...);
  }

  HookHandle register_save_state_pre_hook(SaveStatePreHook hook);
  HookHandle register_load_state_pre_hook(LoadStatePreHook hook);

 protected:
  using Preparation::Preparation;

 private:
  void save_module(const torch::nn::Module& module, const std::filesystem::path& place,
                   std::string_view max_shard_size) const;
  IncompatibleKeys load_module(torch::nn::Module& module, const std::filesystem::path& place,
                               bool strict) const;
  // Where numbered checkpoints are; empty without automatic naming.
  std::filesystem::path numbered_folder();
  void make_room(const std::filesystem::path& folder, const SavingProcesses& processes);

  CheckpointRegistry registry_ = {};
};

}  // namespace acc
