// SPDX-License-Identifier: Apache-2.0
#include "acc/runtime/checkpoint/folder_replacement.hpp"

#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <string>
#include <utility>

#include "acc/base/error.hpp"
#include "acc/base/files.hpp"

namespace acc::detail {
namespace {

namespace fs = std::filesystem;

constexpr const char* kNew = ".acc-new";
constexpr const char* kOld = ".acc-old";
constexpr const char* kGone = ".acc-gone";

fs::path beside(const fs::path& target, const char* ending) {
  return target.parent_path() / ("." + target.filename().string() + ending);
}

// Nothing can be renamed to a mount point.
bool is_mount_point(const fs::path& folder) {
  struct statx about = {};
  const bool known = ::statx(AT_FDCWD, folder.c_str(), 0, 0, &about) == 0 &&
                     (about.stx_attributes_mask & STATX_ATTR_MOUNT_ROOT) != 0;
  return known && (about.stx_attributes & STATX_ATTR_MOUNT_ROOT) != 0;
}

void rename_to(const fs::path& from, const fs::path& to) {
  if (::rename(from.c_str(), to.c_str()) != 0) throw_errno(to, "cannot be replaced", errno);
}

// Makes hard links, or copies where the file system does not support them.
void link(const fs::path& from, const fs::path& to) {
  const auto kinds = fs::copy_options::recursive | fs::copy_options::copy_symlinks;
  std::error_code error;
  fs::copy(from, to, kinds | fs::copy_options::create_hard_links, error);
  if (!error) return;
  fs::remove_all(to, error);
  fs::copy(from, to, kinds, error);
  if (error) throw_errno(from, "cannot be kept", error.value());
}

}  // namespace

FolderReplacement::FolderReplacement(const fs::path& target,
                                     std::function<bool(const std::string& name)> is_replaced)
    : target_(resolved_path(target)),
      temporary_(beside(target_, kNew)),
      old_(beside(target_, kOld)),
      is_replaced_(std::move(is_replaced)) {
  std::error_code none_or_gone;
  const std::string here = (fs::current_path(none_or_gone) / "").string();
  if (here.starts_with((target_ / "").string())) {
    throw Error({.what = "contains the working folder, and would be replaced as a whole",
                 .where = target.string(),
                 .hint = "give the checkpoint a folder of its own"});
  }
  if (fs::exists(target_, none_or_gone) && !fs::is_directory(target_, none_or_gone))
    throw_errno(target, "cannot be replaced", ENOTDIR);
  if (is_mount_point(target_)) {
    throw Error({.what = "is a mount point, and would be replaced as a whole",
                 .where = target.string(),
                 .hint = "give the checkpoint a folder in it"});
  }
}

void FolderReplacement::remove_leftover() const {
  const fs::path discarded = beside(target_, kGone);
  std::error_code error;
  fs::remove_all(discarded, error);
  fs::remove_all(temporary_, error);
  // NFS keeps files that somebody has open, and with them their folder.
  if (!error || ::rename(temporary_.c_str(), discarded.c_str()) == 0) return;
  const bool was_there = errno != ENOENT && errno != ENOTDIR;
  if (was_there) throw_errno(temporary_, "cannot be removed", errno);
}

void FolderReplacement::begin() {
  remove_leftover();
  restore_old();
  create();
}

// mkdir asks the disk, where a name that is looked up may come from the memory of a file system's client.
void FolderReplacement::begin_if_absent() {
  create();
  if (has_begun_) restore_old();
}

void FolderReplacement::create() {
  std::error_code error;
  fs::create_directories(temporary_.parent_path(), error);
  if (error) throw_errno(target_, "cannot be created", error.value());
  has_begun_ = ::mkdir(temporary_.c_str(), 0777) == 0;
  if (!has_begun_ && errno != EEXIST) throw_errno(target_, "cannot be created", errno);
}

// After a kill between two renames. A folder that has entries is not renamed to.
void FolderReplacement::restore_old() const {
  std::error_code error;
  if (!fs::exists(old_, error) || ::rename(old_.c_str(), target_.c_str()) == 0) return;
  const int number = errno;
  if (!fs::exists(target_, error)) throw_errno(target_, "cannot be replaced", number);
  fs::remove_all(old_, error);
}

void FolderReplacement::keep_others() const {
  for (const auto& entry : fs::directory_iterator(target_)) {
    const fs::path name = entry.path().filename();
    if (!is_replaced_(name.string()) && !fs::exists(temporary_ / name)) link(entry.path(), temporary_ / name);
  }
}

void FolderReplacement::exchange() const {
  if (::renameat2(AT_FDCWD, temporary_.c_str(), AT_FDCWD, target_.c_str(), RENAME_EXCHANGE) == 0) return;
  if (errno != EINVAL && errno != ENOSYS) throw_errno(target_, "cannot be replaced", errno);
  // The file system does not support RENAME_EXCHANGE. Between the two renames complete_folder() finds the old
  // folder.
  rename_to(target_, old_);
  rename_to(temporary_, target_);
}

void FolderReplacement::publish() {
  std::error_code error;
  if (fs::exists(target_)) {
    keep_others();
    sync_folder(temporary_);
    exchange();
  } else {
    sync_folder(temporary_);
    rename_to(temporary_, target_);
  }
  sync_folder(target_.parent_path());
  fs::remove_all(temporary_, error);
  fs::remove_all(old_, error);
}

void FolderReplacement::abandon() noexcept {
  std::error_code error;
  fs::remove_all(temporary_, error);
}

fs::path complete_folder(const fs::path& target) {
  const fs::path resolved = resolved_path(target);
  if (!fs::exists(resolved) && fs::exists(beside(resolved, kOld))) return beside(resolved, kOld);
  return target;
}

void remove_folder(const fs::path& folder) {
  fs::path path = absolute_path(folder);
  if (!path.has_filename()) path = path.parent_path();
  // What a link points to belongs to others.
  const fs::path resolved = resolved_path(path.parent_path()) / path.filename();
  const fs::path discarded = beside(resolved, kGone);
  std::error_code error;
  fs::remove_all(discarded, error);  // left by a process that was killed
  if (::rename(resolved.c_str(), discarded.c_str()) != 0) {
    if (errno == ENOENT) return;
    throw_errno(folder, "cannot be removed", errno);
  }
  fs::remove_all(discarded, error);
  if (error) throw_errno(folder, "cannot be removed", error.value());
}

}  // namespace acc::detail
