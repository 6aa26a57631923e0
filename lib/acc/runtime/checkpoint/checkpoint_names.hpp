// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace acc {

/// A checkpoint folder whose name ends with a number, as accelerate's `checkpoint_7`.
struct NumberedCheckpoint {
  std::int64_t number = 0;            ///< Its iteration.
  std::filesystem::path folder = {};  ///< Where it is.
};

/// The checkpoints in `folder`, sorted by number; other entries are ignored. A Trainer's have the prefix
/// `checkpoint-`.
std::vector<NumberedCheckpoint> list_checkpoints(const std::filesystem::path& folder,
                                                 std::string_view prefix = "checkpoint_");

/// The checkpoint with the highest number. Throws Error{usage} when there is none.
std::filesystem::path newest_checkpoint(const std::filesystem::path& folder);

namespace detail {

/// The name of the file with the state of fp16's scale.
inline constexpr const char* kScalerFile = "scaler.pt";
/// The stem of the files with the gradient buckets, which only acc writes.
inline constexpr const char* kBucketsStem = "gradient_buckets";
/// The entries of a file of accumulated gradients.
inline constexpr const char* kNumProcesses = "num_processes";
inline constexpr const char* kGradients = "gradients";  ///< See kNumProcesses.

/// `optimizer.bin`, `optimizer_1.bin`, ...: the first has no number.
std::string numbered_file(const std::string& stem, std::size_t index, const std::string& ending);

/// `random_states_3.pkl`
std::string random_states_file(int process);

/// `accumulated_gradients_3.bin`: accelerate has no such file; acc writes it during an accumulation.
std::string gradients_file(int process);

/// Whether a file of this name has what one process alone knows: random states or accumulated gradients.
bool is_of_one_process(const std::string& name);

/// `custom_checkpoint_3.pkl`
std::string custom_file(std::size_t index);

/// The file of a model in a checkpoint, or the index of its shards, of the names that acc and accelerate give
/// them; `model.safetensors`, which acc writes, if there is none.
std::filesystem::path model_file_in(const std::filesystem::path& checkpoint, std::size_t model);

/// `pytorch_model_fsdp_0` and `optimizer_0`: folders of what is saved in shards.
std::string sharded_model_folder(std::size_t index);
std::string sharded_optimizer_folder(std::size_t index);  ///< See sharded_model_folder.

/// Whether a file or folder of this name belongs to a checkpoint.
bool is_checkpoint_file(const std::string& name);

/// `checkpoint_7` in `folder`.
std::filesystem::path numbered_checkpoint(const std::filesystem::path& folder, std::int64_t number);

/// The folder of the new checkpoint `number`. Throws Error{usage} when it exists: it then belongs to another
/// training.
std::filesystem::path folder_to_save(const std::filesystem::path& folder, std::int64_t number);

/// The number after the highest existing one, at least 0.
std::int64_t next_number(const std::filesystem::path& folder);

/// Removes the checkpoints with the lowest numbers so that `limit` remain, at least 1, but never `saved`: the
/// number of the newest may be lower than those that another training left. Throws Error{system}.
void keep_newest(const std::filesystem::path& folder, std::size_t limit, std::int64_t saved);

/// Removes the temporary folders of Accelerators and Trainers that killed processes left in `folder`.
void remove_leftovers(const std::filesystem::path& folder);

/// Removes the files of a checkpoint from its folder, and leaves others. Throws Error{system}.
void remove_checkpoint_files(const std::filesystem::path& folder);

}  // namespace detail

}  // namespace acc
