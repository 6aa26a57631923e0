// SPDX-License-Identifier: Apache-2.0
#include "acc/formats/weights_replacement.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstdio>
#include <regex>
#include <set>
#include <string>
#include <system_error>
#include <tuple>
#include <utility>

#include "acc/base/error.hpp"
#include "acc/base/files.hpp"
#include "acc/base/machine.hpp"

namespace acc {
namespace {

namespace fs = std::filesystem;

bool is_weights_file(const std::string& name) {
  static const std::regex ours(R"(model(-\d{5}-of-\d{5})?\.safetensors(\.index\.json)?)");
  return std::regex_match(name, ours);
}

std::set<std::string> names_in(const fs::path& folder) {
  std::set<std::string> names;
  for (const auto& entry : fs::directory_iterator(folder)) names.insert(entry.path().filename().string());
  return names;
}

void remove_file(const fs::path& file) {
  std::error_code error;
  if (!fs::remove(file, error) && error) throw_errno(file, "cannot be removed", error.value());
}

constexpr std::string_view kTemporaryStem = ".weights.acc-";

// The names of temporary folders whose locks this process sees: those on the same mounted file system of the
// same running kernel. Containers usually share both, but not their process ids. Empty if the kernel does not
// tell.
std::string stem_of_locked(const fs::path& folder) {
  const std::string boot = first_line_of("/proc/sys/kernel/random/boot_id").substr(0, 8);
  struct stat about = {};
  if (boot.empty() || ::stat(folder.c_str(), &about) != 0) return "";
  return fmt::format("{}{}-{:x}-", kTemporaryStem, boot, about.st_dev);
}

bool is_unused_for_a_day(const fs::path& folder) {
  std::error_code error;
  fs::file_time_type last = fs::last_write_time(folder, error);
  for (fs::directory_iterator entry(folder, error), end; !error && entry != end; entry.increment(error))
    last = std::max(last, entry->last_write_time(error));
  return !error && fs::file_time_type::clock::now() - last > std::chrono::hours(24);
}

enum class LockResult { locked, locked_by_another, not_supported };

LockResult lock_temporary(const Descriptor& folder) {
  if (::flock(folder.get(), LOCK_EX | LOCK_NB) == 0) return LockResult::locked;
  return errno == EWOULDBLOCK ? LockResult::locked_by_another : LockResult::not_supported;
}

Descriptor open_temporary(const fs::path& folder) {
  return Descriptor(::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
}

void remove_abandoned(const fs::path& folder) {
  const std::string stem = stem_of_locked(folder);
  std::set<fs::path> temporaries;
  std::error_code error;
  for (fs::directory_iterator entry(folder, error), end; !error && entry != end; entry.increment(error))
    if (entry->path().filename().string().starts_with(kTemporaryStem)) temporaries.insert(entry->path());
  for (const fs::path& temporary : temporaries) {
    const Descriptor opened = open_temporary(temporary);
    const LockResult lock = opened ? lock_temporary(opened) : LockResult::locked_by_another;
    if (lock == LockResult::locked_by_another) continue;
    const bool has_lock_of_owner =
        lock == LockResult::locked && !stem.empty() && temporary.filename().string().starts_with(stem);
    if (has_lock_of_owner || is_unused_for_a_day(temporary)) fs::remove_all(temporary, error);
  }
}

// Returns the new folder's path and, if the file system has locks, its lock.
std::pair<fs::path, Descriptor> make_temporary(const fs::path& folder) {
  constexpr int kMaxTries = 100;
  std::string stem = stem_of_locked(folder);
  for (int tries = 0; tries < kMaxTries; ++tries) {
    fs::path path = folder / fmt::format("{}{:08x}", stem.empty() ? kTemporaryStem : stem, random_number());
    const bool made = ::mkdir(path.c_str(), 0777) == 0;
    if (!made && errno == EEXIST) continue;
    Descriptor lock = made ? open_temporary(path) : Descriptor();
    if (made && !lock && errno == ENOENT) continue;
    if (!lock) throw_errno(folder, "cannot be created", errno);
    const LockResult result = lock_temporary(lock);
    if (result == LockResult::not_supported) {
      if (stem.empty()) return {std::move(path), Descriptor()};
      // Another process that gets a lock later would take the folder for a leftover.
      ::rmdir(path.c_str());
      stem.clear();
      continue;
    }
    // Another process may have found it before it was locked, and removed it.
    if (result == LockResult::locked_by_another || ::access(path.c_str(), F_OK) != 0) {
      ::rmdir(path.c_str());
      continue;
    }
    return {std::move(path), std::move(lock)};
  }
  throw_errno(folder, "cannot be created", EEXIST);
}

}  // namespace

WeightsReplacement::WeightsReplacement(const fs::path& folder)
    : folder_(absolute_path(folder)), existing_(folder_) {
  std::error_code error;
  while (!fs::exists(existing_, error) && existing_.has_relative_path()) existing_ = existing_.parent_path();
  fs::create_directories(folder_, error);
  if (error) throw_errno(folder_, "cannot be created", error.value());
  remove_abandoned(folder_);
  std::tie(temporary_, lock_) = make_temporary(folder_);
}

WeightsReplacement::~WeightsReplacement() {
  std::error_code error;
  fs::remove_all(temporary_, error);
}

void WeightsReplacement::publish() {
  std::set<std::string> names = names_in(temporary_);
  const bool in_shards = names.erase(std::string(kWeightsIndex)) > 0;
  // Readers take the one file or the index: without either there are no weights.
  if (in_shards) {
    remove_file(folder_ / kWeightsIndex);
    remove_file(folder_ / kWeightsFile);
  }
  const auto move = [&](const std::string& name) {
    if (::rename((temporary_ / name).c_str(), (folder_ / name).c_str()) != 0)
      throw_errno(folder_ / name, "cannot be replaced", errno);
  };
  for (const std::string& name : names) move(name);
  if (in_shards) {
    move(std::string(kWeightsIndex));
    names.emplace(kWeightsIndex);
  } else {
    remove_file(folder_ / kWeightsIndex);
  }
  for (const std::string& name : names_in(folder_))
    if (is_weights_file(name) && !names.contains(name)) remove_file(folder_ / name);
  std::error_code error;
  fs::remove_all(temporary_, error);
  sync_folder(folder_);
  // The folders that were created have their names in the one above.
  for (fs::path created = folder_; created != existing_; created = created.parent_path())
    sync_folder(created.parent_path());
}

}  // namespace acc
