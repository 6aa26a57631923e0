// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

namespace acc {

/// The names of accelerate's checkpoint folders: what is in one, and those that are numbered by themselves.

/// `optimizer.bin`, `optimizer_1.bin`, ...: the first has no number.
std::string numbered_file(const std::string& stem, std::size_t index, const std::string& ending);

/// `random_states_3.pkl`
std::string random_states_file(int process);

/// `accumulated_gradients_3.bin`: acc's own, in the midst of an accumulation.
std::string gradients_file(int process);

/// `custom_checkpoint_3.pkl`
std::string custom_file(std::size_t index);

/// Whether a file of this name belongs to a checkpoint.
bool is_checkpoint_file(const std::string& name);

struct NumberedCheckpoint {
  std::int64_t number = 0;
  std::filesystem::path folder = {};
};

/// `checkpoint_7` in `folder`.
std::filesystem::path numbered_checkpoint(const std::filesystem::path& folder, std::int64_t number);

/// The checkpoints in `folder`, by their numbers; whatever else is there is passed over.
std::vector<NumberedCheckpoint> list_checkpoints(const std::filesystem::path& folder);

/// Where the checkpoint `number` is to be saved. Throws Error{usage} when there is one already, which would
/// be another training's.
std::filesystem::path folder_to_save(const std::filesystem::path& folder, std::int64_t number);

/// The checkpoint with the highest number. Throws Error{usage} when there is none.
std::filesystem::path newest_checkpoint(const std::filesystem::path& folder);

/// The number after the highest that there is, at least 0.
std::int64_t next_number(const std::filesystem::path& folder);

/// Removes the lowest numbers so that `limit` remain. Throws Error{system}.
void keep_newest(const std::filesystem::path& folder, std::size_t limit);

/// Removes what a killed process left of checkpoints in `folder` that it was writing or removing.
void remove_leftovers(const std::filesystem::path& folder);

}  // namespace acc
