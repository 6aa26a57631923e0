// SPDX-License-Identifier: Apache-2.0
#include "acc/runtime/trainer/trainer_checkpoints.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <system_error>
#include <tuple>
#include <utility>
#include <vector>

#include "acc/base/error.hpp"
#include "acc/base/files.hpp"
#include "acc/runtime/checkpoint/checkpoint_names.hpp"
#include "acc/runtime/checkpoint/folder_replacement.hpp"

namespace acc::detail {
namespace {

namespace fs = std::filesystem;

constexpr const char* kCheckpointPrefix = "checkpoint-";

// Sorted by step.
std::vector<NumberedCheckpoint> checkpoints_in(const fs::path& folder) {
  std::vector<NumberedCheckpoint> checkpoints = list_checkpoints(folder, kCheckpointPrefix);
  std::erase_if(checkpoints,
                [](const NumberedCheckpoint& one) { return !fs::exists(one.folder / kTrainerStateFile); });
  return checkpoints;
}

// A training that went back to an earlier step is newer than the higher steps that it found: its own steps
// are the newest, and the others are as old as their files.
void rotate_checkpoints(const fs::path& folder, int limit, const fs::path& best,
                        const std::set<std::int64_t>& own_steps) {
  std::vector<NumberedCheckpoint> checkpoints = checkpoints_in(folder);
  std::ranges::sort(checkpoints, {}, [&](const NumberedCheckpoint& checkpoint) {
    const bool is_own = own_steps.contains(checkpoint.number);
    std::error_code not_there;
    const auto written =
        is_own ? fs::file_time_type() : fs::last_write_time(checkpoint.folder / kTrainerStateFile, not_there);
    return std::tuple(is_own, written, checkpoint.number);
  });
  auto surplus = static_cast<std::ptrdiff_t>(checkpoints.size()) - limit;
  for (std::size_t i = 0; i + 1 < checkpoints.size() && surplus > 0; ++i) {
    if (is_same_folder(checkpoints[i].folder, best)) continue;
    remove_folder(checkpoints[i].folder);
    --surplus;
  }
}

}  // namespace

void TrainerCheckpoints::require_writable() const {
  fs::path nearest = absolute_path(output_dir_);
  std::error_code unknown;
  while (!fs::exists(fs::symlink_status(nearest, unknown)) && nearest.has_relative_path())
    nearest = nearest.parent_path();
  int error = 0;
  if (!fs::is_directory(nearest, unknown)) error = ENOTDIR;
  if (error == 0 && ::access(nearest.c_str(), W_OK | X_OK) != 0) error = errno;
  if (error == 0) return;
  throw Error({.kind = ErrorKind::config,
               .what = fmt::format("{} cannot be written: {}", nearest.string(), std::strerror(error)),
               .where = "output_dir",
               .hint = "name another folder, or set save_strategy to no"});
}

fs::path TrainerCheckpoints::folder_of(std::int64_t step) const {
  return output_dir_ / (kCheckpointPrefix + std::to_string(step));
}

fs::path TrainerCheckpoints::folder_to_resume(const std::string& resume_from_checkpoint) const {
  const std::string& choice = resume_from_checkpoint;
  if (choice.empty() || choice == "false") return {};
  if (choice != "last" && choice != "true") return without_trailing_slash(choice);
  const std::vector<NumberedCheckpoint> checkpoints = checkpoints_in(output_dir_);
  if (!checkpoints.empty()) return checkpoints.back().folder;
  if (choice == "last") return {};
  throw Error({.kind = ErrorKind::config,
               .what = "no checkpoint in " + output_dir_.string(),
               .where = "resume_from_checkpoint"});
}

std::function<void()> TrainerCheckpoints::rotation(int limit, const fs::path& best) const {
  return [limit, folder = absolute_path(output_dir_), best = best.empty() ? best : absolute_path(best),
          own_steps = own_steps_] { rotate_checkpoints(folder, limit, best, own_steps); };
}

void TrainerCheckpoints::remove_all_but(const fs::path& checkpoint) const {
  if (!is_same_folder(without_trailing_slash(absolute_path(checkpoint)).parent_path(), output_dir_)) return;
  for (const NumberedCheckpoint& one : checkpoints_in(output_dir_))
    if (!is_same_folder(one.folder, checkpoint)) remove_folder(one.folder);
}

bool is_newest(const std::string& resume_from_checkpoint) {
  return resume_from_checkpoint.empty() || resume_from_checkpoint == "last" ||
         resume_from_checkpoint == "true";
}

bool is_same_folder(const fs::path& first, const fs::path& second) {
  std::error_code one_is_missing;
  return fs::equivalent(first, second, one_is_missing);
}

}  // namespace acc::detail
