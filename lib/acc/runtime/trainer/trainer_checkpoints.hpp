// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <set>
#include <string>
#include <utility>

namespace acc::detail {

/// The file with the TrainerState in a checkpoint.
inline constexpr const char* kTrainerStateFile = "trainer_state.json";
/// The file with the TrainingArguments in a checkpoint.
inline constexpr const char* kTrainingArgumentsFile = "training_args.json";

/// The checkpoints of a training: the folders `checkpoint-<step>` in its output_dir, in which there may be
/// others, of an earlier training.
class TrainerCheckpoints {
 public:
  explicit TrainerCheckpoints(std::filesystem::path output_dir) : output_dir_(std::move(output_dir)) {}

  /// Another training begins: none of the checkpoints is its own.
  void forget_own() { own_steps_.clear(); }
  /// The checkpoint of this step is the training's own.
  void add_own(std::int64_t step) { own_steps_.insert(step); }
  bool is_own(std::int64_t step) const { return own_steps_.contains(step); }
  const std::set<std::int64_t>& own_steps() const { return own_steps_; }

  /// Throws Error{config} unless output_dir, or the folder in which it would be created, can be written.
  /// Creates nothing.
  void require_writable() const;

  /// The folder of the checkpoint of this step, whether it exists or not.
  std::filesystem::path folder_of(std::int64_t step) const;

  /// The folder that `resume_from_checkpoint` names, see TrainingArguments; empty: none. Throws Error{config}
  /// for `true` when there is no checkpoint.
  std::filesystem::path folder_to_resume(const std::string& resume_from_checkpoint) const;

  /// What removes the oldest checkpoints until `limit` remain, but neither `best`, which may be empty, nor
  /// the newest. It may be called on another thread, and later: it knows what is so now.
  std::function<void()> rotation(int limit, const std::filesystem::path& best) const;

  /// Removes all checkpoints but this one, if it is one of them.
  void remove_all_but(const std::filesystem::path& checkpoint) const;

 private:
  std::filesystem::path output_dir_;
  std::set<std::int64_t> own_steps_ = {};
};

/// Whether `resume_from_checkpoint` names the newest checkpoint, whichever it is.
bool is_newest(const std::string& resume_from_checkpoint);

/// Whether both paths lead to one folder, which exists.
bool is_same_folder(const std::filesystem::path& first, const std::filesystem::path& second);

}  // namespace acc::detail
