// SPDX-License-Identifier: Apache-2.0
#include "acc/launch/log_folder.hpp"

#include <fmt/format.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <string_view>

#include "acc/base/error.hpp"
#include "acc/base/files.hpp"
#include "acc/base/machine.hpp"
#include "acc/control/flight_record.hpp"
#include "acc/control/job_file.hpp"
#include "acc/launch/unique_folder.hpp"

namespace acc::launcher {
namespace {

namespace fs = std::filesystem;

[[noreturn]] void throw_folder_error(const fs::path& folder, const std::string& reason) {
  throw Error({.kind = ErrorKind::system,
               .what = "cannot create the log folder: " + reason,
               .where = folder.string(),
               .hint = "choose another place with --log-dir; --log-dir /dev/null keeps no logs"});
}

void make_folders(const fs::path& folder) {
  std::error_code error;
  fs::create_directories(folder, error);
  if (error) throw_folder_error(folder, error.message());
}

// Creates `stem` followed by random letters.
fs::path make_unique_or_fail(const fs::path& stem, const std::function<void(const fs::path&)>& before) {
  fs::path folder = make_unique_folder(stem, before);
  if (folder.empty()) throw_folder_error(stem, std::strerror(errno));
  return folder;
}

bool has_streams(const StreamMap& map) {
  return map.default_streams != Streams::none ||
         std::ranges::any_of(map.of_rank, [](const auto& entry) { return entry.second != Streams::none; });
}

constexpr const char* kMemory = "/dev/shm";

// Whether the folder has room for this many small files; a total of 0 inodes means no limit.
bool has_room(const char* folder, std::uint64_t files) {
  struct statvfs about = {};
  return ::access(folder, W_OK | X_OK) == 0 && ::statvfs(folder, &about) == 0 && about.f_bavail >= files &&
         (about.f_files == 0 || about.f_favail >= files);
}

// Error files alone are small and temporary: in memory they cost microseconds, while on a busy disk the
// folders of a job with two workers take 20 ms.
fs::path temporary_parent(const LaunchPlan& plan, bool streams) {
  // Base, job folder and attempt; folder, error file and page of each worker.
  const auto files = 3 + 3 * static_cast<std::uint64_t>(plan.nproc_per_node);
  if (!streams && plan.inherited.get("TMPDIR").empty() && has_room(kMemory, files)) return kMemory;
  return temporary_folder(plan.inherited).value_or("/tmp");
}

}  // namespace

LogFolder LogFolder::make(const LaunchPlan& plan, const std::function<void(const fs::path&)>& before,
                          const fs::path& pages) {
  const OutputPlan& output = plan.output;
  const bool requested = has_streams(output.redirects) || has_streams(output.tee);
  const bool streams =
      requested || !output.duplicate_stdout_filters.empty() || !output.duplicate_stderr_filters.empty();
  const bool useful = plan.sets_ranks || streams || !output.log_dir.empty();
  LogFolder result;
  if (plan.sets_ranks) result.pages_ = pages;
  result.workers_ = plan.nproc_per_node;
  if (output.no_logs || !useful) return result;
  fs::path base = output.log_dir;
  if (base.empty()) {
    const fs::path parent = temporary_parent(plan, streams);
    base = make_unique_or_fail(parent / kLogStem, before);
    result.temporary_ = base;
    result.in_memory_ = parent == kMemory;
    if (result.in_memory_) result.pages_.clear();
    result.stays_ = requested;
  } else {
    base = absolute_path(base);  // a worker may change its folder before it writes its error file
    make_folders(base);
  }
  std::string run_id = plan.run_id;
  std::ranges::replace(run_id, '/', '_');
  try {
    result.run_folder_ = make_unique_or_fail(base / (run_id + "_"), [](const fs::path&) {});
  } catch (const Error&) {
    std::error_code ignored;
    if (!result.temporary_.empty()) fs::remove(result.temporary_, ignored);
    throw;
  }
  return result;
}

fs::path LogFolder::attempt(int number) const {
  if (run_folder_.empty()) return {};
  return run_folder_ / ("attempt_" + std::to_string(number));
}

std::string LogFolder::page_prefix(int attempt) const {
  if (!pages_.empty()) return pages_ / fmt::format("{}-", attempt);
  if (!in_memory_) return {};
  return this->attempt(attempt) / "progress-";
}

std::optional<FileId> LogFolder::make_page_folder(int attempt) const {
  const std::string prefix = page_prefix(attempt);
  if (prefix.empty()) return std::nullopt;
  const fs::path folder = fs::path(prefix).parent_path();
  ::mkdir(folder.c_str(), 0700);
  return file_id(folder);
}

void LogFolder::make_attempt(int number, int workers) const {
  // Also those of this number: workers that start again because a node joins or leaves have the same.
  remove_pages();
  if (const std::string before = page_prefix(number - 1); number > 0 && !before.empty()) {
    for (int local_rank = 0; local_rank < workers; ++local_rank) {
      const std::string page = before + std::to_string(local_rank);
      if (::unlink(page.c_str()) == 0) ::unlink(flight_record_socket(page).c_str());
    }
  }
  if (run_folder_.empty()) return;
  const fs::path folder = attempt(number);
  std::error_code error;
  fs::remove_all(folder, error);
  make_folders(folder);
  for (int local_rank = 0; local_rank < workers; ++local_rank) {
    const fs::path of_worker = folder / std::to_string(local_rank);
    if (::mkdir(of_worker.c_str(), 0777) != 0) throw_folder_error(of_worker, std::strerror(errno));
  }
}

void LogFolder::remove_temporary() const {
  if (temporary_.empty()) return;
  // As a rule there was one attempt, and all folders are empty: to look into one takes seven more system
  // calls.
  const fs::path first = attempt(0);
  for (int local_rank = 0; local_rank < workers_; ++local_rank)
    ::rmdir((first / std::to_string(local_rank)).c_str());
  ::rmdir(first.c_str());
  ::rmdir(run_folder_.c_str());
  if (::rmdir(temporary_.c_str()) == 0) return;
  std::error_code error;
  fs::remove_all(temporary_, error);
}

void LogFolder::remove_pages() const {
  std::error_code error;
  if (!pages_.empty()) fs::remove_all(pages_, error);
}

}  // namespace acc::launcher
