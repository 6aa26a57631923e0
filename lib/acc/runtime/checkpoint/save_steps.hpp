// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <filesystem>
#include <functional>
#include <vector>

#include "acc/runtime/checkpoint/checkpoint_content.hpp"
#include "acc/runtime/checkpoint/folder_replacement.hpp"
#include "acc/runtime/checkpoint/save_options.hpp"
#include "acc/runtime/checkpoint/saving_processes.hpp"
#include "acc/runtime/checkpoint/state_files.hpp"
#include "acc/runtime/checkpoint/state_shards.hpp"
#include "acc/runtime/checkpoint/tensor_copies.hpp"

namespace acc::detail {

/// A checkpoint that is being saved, see save_checkpoint, in two steps: the second may be taken on another
/// thread while the objects change, if their tensors are copied.
class CheckpointSave {
 public:
  /// Together: creates the new folder, calls the hooks and collects the files of this process. Without
  /// `copies` they share the memory of the objects, which must not change before they are written.
  CheckpointSave(const std::filesystem::path& folder, const CheckpointContent& content,
                 const SavingProcesses& processes, const SaveCheckpointOptions& options,
                 TensorCopies* copies = nullptr);

  /// Together, once: writes the files, and replaces the old folder when all processes have written theirs and
  /// taken each of the `last_steps`, one after the other, with the new folder. `processes` are those of the
  /// constructor; their group may be another one.
  void finish(const SavingProcesses& processes,
              const std::vector<std::function<void(const std::filesystem::path& folder)>>& last_steps = {});

 private:
  void collect(const CheckpointContent& content, const SavingProcesses& processes,
               const SaveCheckpointOptions& options);
  void copy(TensorCopies& copies);

  FolderReplacement folder_;
  std::vector<CheckpointFile> files_ = {};
  std::vector<CheckpointShards> shards_ = {};
};

}  // namespace acc::detail
