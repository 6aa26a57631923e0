// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "acc/formats/saved_states.hpp"
#include "acc/runtime/checkpoint/saving_processes.hpp"

namespace acc::detail {

/// The states that one Accelerator's trainings have saved in a job with a folder in memory: the newest two
/// snapshots of the training that is under way, one of each before, and notes of where others are on disks.
class MemorySnapshots {
 public:
  /// For the folder that ACC_MEMORY_FOLDER names, and the Accelerator that this process creates now.
  MemorySnapshots();

  /// Whether the job has such a folder. Without it nothing else may be called but begin_training.
  bool is_on() const { return !memory_.empty(); }

  /// Another training begins; its states are its own.
  void begin_training() {
    ++training_.training;
    next_.reset();
  }

  /// Together: the number of the next state.
  std::int64_t next_number(const SavingProcesses& processes);

  /// The folder of a snapshot, to be saved with last_steps.
  std::filesystem::path folder_of(std::int64_t number) const { return states().snapshot(number); }

  /// What follows when the files of a snapshot are written, which becomes `disk` where it is put on a disk:
  /// see CheckpointSave::finish.
  std::vector<std::function<void(const std::filesystem::path& folder)>> last_steps(
      std::int64_t number, const std::filesystem::path& disk, const SavingProcesses& processes) const;

  /// Each process calls it for a snapshot that is complete: makes room for the next one. The first says on
  /// standard error how much memory the snapshots need.
  void make_room(std::int64_t number, const SavingProcesses& processes) const;

  /// Each process calls it for a state that is in this folder on a disk, or about to appear there. Where
  /// there is no room for the note, a line on standard error says so.
  void note_on_disk(std::int64_t number, const std::filesystem::path& folder,
                    const SavingProcesses& processes) const;

  /// Together: the folder of the training's newest state that can be loaded, see newest_common_state. Those
  /// after it are gone. None: it has none; where it has saved some, a line on standard error says so.
  std::optional<std::filesystem::path> newest(const SavingProcesses& processes);

 private:
  SavedStates states() const { return states_of_training(memory_, training_); }

  std::filesystem::path memory_;
  TrainingNumber training_;
  // Absent before the first state of this process.
  std::optional<std::int64_t> next_ = {};
  // Of this process and those that save with it.
  std::string run_id_ = {};
};

/// Writes to standard error, if this is the main process.
void warn(const SavingProcesses& processes, const std::string& text);

}  // namespace acc::detail
