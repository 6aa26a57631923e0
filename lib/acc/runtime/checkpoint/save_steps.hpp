// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <filesystem>
#include <functional>
#include <vector>

#include "acc/runtime/checkpoint/checkpoint.hpp"
#include "acc/runtime/checkpoint/folder_replacement.hpp"
#include "acc/runtime/checkpoint/state_files.hpp"
#include "acc/runtime/checkpoint/state_shards.hpp"
#include "acc/runtime/checkpoint/tensor_copies.hpp"

namespace acc::detail {

/// Together: creates the new folder.
void begin_together(FolderReplacement& folder, const SavingProcesses& processes);

/// Together: calls `function` on every process. When it throws on any, the new folder is removed.
void fill_together(FolderReplacement& folder, const SavingProcesses& processes,
                   const std::function<void()>& function);

/// Together: replaces the old folder with the new one. When that fails, the new folder is removed.
void publish_together(FolderReplacement& folder, const SavingProcesses& processes);

/// A checkpoint that is being saved, see save_checkpoint, in two steps: the second may be taken on another
/// thread while the objects change, if their tensors are copied.
class CheckpointSave {
 public:
  /// Together: creates the new folder, calls the hooks and collects the files of this process. Without
  /// `copies` they share the memory of the objects, which must not change before they are written.
  CheckpointSave(const std::filesystem::path& folder, const CheckpointContent& content,
                 const SavingProcesses& processes, const SaveCheckpointOptions& options,
                 TensorCopies* copies = nullptr);

  /// Together, once: writes the files, and replaces the old folder when all processes have written theirs.
  /// `processes` are those of the constructor; their group may be another one.
  void finish(const SavingProcesses& processes);

 private:
  void collect(const CheckpointContent& content, const SavingProcesses& processes,
               const SaveCheckpointOptions& options);
  void copy(TensorCopies& copies);

  FolderReplacement folder_;
  std::vector<CheckpointFile> files_ = {};
  std::vector<CheckpointShards> shards_ = {};
};

}  // namespace acc::detail
