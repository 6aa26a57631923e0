// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

namespace acc {

/// What a state in memory says of itself.
struct SnapshotRecord {
  /// Of this save, the same on all machines.
  std::string id = {};
  /// The folder, an absolute path, that it becomes where it is put on a disk.
  std::filesystem::path disk = {};

  bool operator==(const SnapshotRecord&) const = default;
};

/// Writes `snapshot.json` to the folder. Throws Error{usage} for a `disk` that is not UTF-8, and
/// Error{system}.
void write_snapshot_record(const std::filesystem::path& folder, const SnapshotRecord& record);
/// Throws Error, naming the file, if it is missing or is something else.
SnapshotRecord read_snapshot_record(const std::filesystem::path& folder);

/// The highest number of a state, which no training reaches. What has a higher one is ignored.
inline constexpr std::int64_t kMaxStateNumber = 1'000'000'000'000'000;

/// A state that a training has saved: a folder in memory, or one on a disk.
struct SavedState {
  /// Counts the states of the training in the order in which they were saved.
  std::int64_t number = 0;
  std::filesystem::path folder = {};  ///< Where it is.
  bool in_memory = true;              ///< Else it is on a disk, and may be gone.

  bool operator==(const SavedState&) const = default;
};

/// The states of one training in the memory of this machine, which outlives its processes: the folders
/// `snapshot_<number>`, which get that name when they are whole, and `on_disk_<number>`, files
/// with the absolute paths of those that went to a disk.
class SavedStates {
 public:
  /// `folder` need not exist.
  explicit SavedStates(std::filesystem::path folder) : folder_(std::move(folder)) {}

  const std::filesystem::path& folder() const { return folder_; }  ///< That of the constructor.

  /// The newest first. None where the folder is missing.
  std::vector<SavedState> all() const;

  /// The folder of the snapshot of this number, whether it exists or not.
  std::filesystem::path snapshot(std::int64_t number) const;

  /// Notes that the state of this number is in this folder on a disk, or will be. Throws Error{usage} for a
  /// folder that is not UTF-8, and Error{system}.
  void add_on_disk(std::int64_t number, const std::filesystem::path& folder) const;

  /// Removes all but the newest `count` snapshots, and all but the newest `count` notes of those on a disk,
  /// to which a training goes back if its snapshots are damaged.
  void keep_newest(std::size_t count) const;

  /// Removes what was saved after this number.
  void remove_after(std::int64_t number) const;

  /// Removes what killed processes have left. Nobody may be saving.
  void remove_leftovers() const;

 private:
  std::filesystem::path folder_;
};

/// Which of the trainings of a program it is.
struct TrainingNumber {
  int accelerator = 0;  ///< Of the Accelerators that the program has created.
  int training = 0;     ///< Of the trainings with this Accelerator.

  auto operator<=>(const TrainingNumber&) const = default;
};

/// The states of a training in the folder that a job has in memory, ACC_MEMORY_FOLDER.
SavedStates states_of_training(const std::filesystem::path& memory, const TrainingNumber& training);

/// Those of all trainings of the job, the first training first.
std::vector<SavedStates> states_of_trainings(const std::filesystem::path& memory);

}  // namespace acc
