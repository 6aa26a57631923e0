// SPDX-License-Identifier: Apache-2.0
#include "acc/runtime/checkpoint/folder_replacement.hpp"

#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <climits>
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

// The names of the other folders are longer.
void require_short_name(const fs::path& target, const fs::path& temporary) {
  struct stat about = {};
  const bool is_short = temporary.filename().string().size() < NAME_MAX &&  // kGone is one longer
                        (::lstat(temporary.c_str(), &about) == 0 || errno != ENAMETOOLONG);
  if (is_short) return;
  throw Error({.what = "has too long a name: that of the new folder beside it is longer",
               .where = target.string(),
               .hint = "give the checkpoint a shorter name"});
}

// EXDEV: it belongs to a layer of overlayfs that cannot be changed, or to another quota.
[[noreturn]] void refuse_to_replace(const fs::path& target, int number) {
  if (number != EXDEV) throw_errno(target, "cannot be replaced", number);
  throw Error(
      {.kind = ErrorKind::system,
       .what = "cannot be replaced: its file system does not rename it, as a folder of a container's image",
       .where = target.string(),
       .hint = "save to a new folder, or to a volume"});
}

// Makes hard links, or copies where the file system does not support them.
void keep_entry(const fs::path& from, const fs::path& to) {
  std::error_code error;
  struct stat about = {};
  if (::lstat(from.c_str(), &about) != 0) throw_errno(from, "cannot be kept", errno);
  if (S_ISDIR(about.st_mode)) {
    if (::mkdir(to.c_str(), 0700) != 0) throw_errno(from, "cannot be kept", errno);
    for (const auto& entry : fs::directory_iterator(from, error))
      keep_entry(entry.path(), to / entry.path().filename());
    if (error) throw_errno(from, "cannot be kept", error.value());
    return;
  }
  if (::link(from.c_str(), to.c_str()) == 0) return;
  fs::copy(from, to, fs::copy_options::copy_symlinks, error);
  if (!error) return;
  if (S_ISREG(about.st_mode) || S_ISLNK(about.st_mode)) throw_errno(from, "cannot be kept", error.value());
  throw Error({.kind = ErrorKind::system,
               .what = "cannot be kept: it is a pipe, a socket or a device",
               .where = from.string(),
               .hint = "move it out of the folder"});
}

// Gives what is new the owners and modes of what it replaces.
void keep_owners_and_modes(const fs::path& old, const fs::path& replacement) {
  struct stat before = {};
  struct stat now = {};
  if (::lstat(old.c_str(), &before) != 0 || ::lstat(replacement.c_str(), &now) != 0) return;
  if (S_ISDIR(before.st_mode) && S_ISDIR(now.st_mode)) {
    std::error_code unreadable;
    for (const auto& entry : fs::directory_iterator(replacement, unreadable))
      keep_owners_and_modes(old / entry.path().filename(), entry.path());
  } else if (!S_ISREG(before.st_mode) || !S_ISREG(now.st_mode) || before.st_ino == now.st_ino) {
    return;
  }
  const bool is_alike =
      before.st_mode == now.st_mode && before.st_uid == now.st_uid && before.st_gid == now.st_gid;
  if (is_alike) return;
  const Descriptor opened(::open(replacement.c_str(), O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC));
  if (opened) keep_owner_and_mode(opened.get(), before);
}

// Nobody removes files from a folder that may not be written.
void make_removable(const fs::path& folder) {
  std::error_code error;
  if (fs::symlink_status(folder, error).type() != fs::file_type::directory) return;
  fs::permissions(folder, fs::perms::owner_all, fs::perm_options::add, error);
  for (fs::directory_iterator entry(folder, error), end; !error && entry != end; entry.increment(error))
    make_removable(entry->path());
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
  require_short_name(target, temporary_);
}

void FolderReplacement::remove_leftover() const {
  const fs::path discarded = beside(target_, kGone);
  std::error_code error;
  fs::remove_all(discarded, error);
  // A rename asks the disk: what a client of it has cached under this name may have been published since.
  if (::rename(temporary_.c_str(), discarded.c_str()) == 0) {
    make_removable(discarded);
    fs::remove_all(discarded, error);  // NFS keeps files that somebody has open, and with them their folder
    return;
  }
  const int number = errno;
  if (number == ENOENT || number == ENOTDIR) return;
  fs::remove_all(temporary_, error);
  if (error) throw_errno(temporary_, "cannot be removed", number);
}

void FolderReplacement::begin() {
  remove_leftover();
  restore_old();
  create();
}

// mkdir asks the disk, where a client of it may have cached the name that is looked up.
void FolderReplacement::begin_if_absent() {
  create();
  if (has_begun_) restore_old();
}

void FolderReplacement::create() {
  std::error_code error;
  fs::create_directories(temporary_.parent_path(), error);
  if (error) throw_errno(target_, "cannot be created", error.value());
  struct stat old = {};
  const bool replaces = ::stat(complete_folder(target_).c_str(), &old) == 0;
  has_begun_ = ::mkdir(temporary_.c_str(), replaces ? 0700 : 0777) == 0;
  if (!has_begun_ && errno != EEXIST) throw_errno(target_, "cannot be created", errno);
  if (!has_begun_ || !replaces) return;
  old_mode_ = old.st_mode;
  // Files that are new in it get its group, as they would in the old one.
  old.st_uid = ::geteuid();
  old.st_mode = S_IFDIR | S_IRWXU | (old.st_mode & S_ISGID);
  const Descriptor opened(::open(temporary_.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (opened) keep_owner_and_mode(opened.get(), old);
}

// After a kill between two renames. rename(2) does not replace a folder that has entries.
void FolderReplacement::restore_old() const {
  std::error_code error;
  if (!fs::exists(old_, error) || ::rename(old_.c_str(), target_.c_str()) == 0) return;
  const int number = errno;
  if (number == ENOENT) return;  // cached, and gone
  if (!fs::exists(target_, error)) throw_errno(target_, "cannot be replaced", number);
  fs::remove_all(old_, error);
}

void FolderReplacement::keep_others() const {
  for (const auto& entry : fs::directory_iterator(target_)) {
    const fs::path name = entry.path().filename();
    if (!is_replaced_(name.string()) && !fs::exists(temporary_ / name))
      keep_entry(entry.path(), temporary_ / name);
  }
}

void FolderReplacement::exchange() const {
  if (::renameat2(AT_FDCWD, temporary_.c_str(), AT_FDCWD, target_.c_str(), RENAME_EXCHANGE) == 0) return;
  if (errno != EINVAL && errno != ENOSYS) refuse_to_replace(target_, errno);
  // The file system does not support RENAME_EXCHANGE. Between the two renames complete_folder() finds the old
  // folder.
  if (::rename(target_.c_str(), old_.c_str()) != 0) refuse_to_replace(target_, errno);
  if (::rename(temporary_.c_str(), target_.c_str()) == 0) return;
  const int number = errno;
  ::rename(old_.c_str(), target_.c_str());
  refuse_to_replace(target_, number);
}

void FolderReplacement::publish() {
  std::error_code error;
  if (fs::exists(target_)) {
    keep_others();
    keep_owners_and_modes(target_, temporary_);
    sync_folder(temporary_);
    exchange();
  } else {
    if (old_mode_) ::chmod(temporary_.c_str(), *old_mode_ & 07777U);
    sync_folder(temporary_);
    if (::rename(temporary_.c_str(), target_.c_str()) != 0) refuse_to_replace(target_, errno);
  }
  sync_folder(target_.parent_path());
  make_removable(temporary_);
  fs::remove_all(temporary_, error);
  fs::remove_all(old_, error);
}

void FolderReplacement::abandon() noexcept {
  std::error_code error;
  if (has_begun_) fs::remove_all(temporary_, error);
}

fs::path complete_folder(const fs::path& target) {
  const fs::path resolved = resolved_path(target);
  std::error_code too_long;
  if (!fs::exists(resolved) && fs::exists(beside(resolved, kOld), too_long)) return beside(resolved, kOld);
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
  const bool is_renamed = ::rename(resolved.c_str(), discarded.c_str()) == 0;
  if (!is_renamed && errno == ENOENT) return;
  // EXDEV: as in refuse_to_replace.
  if (!is_renamed && errno != EXDEV) throw_errno(folder, "cannot be removed", errno);
  fs::remove_all(is_renamed ? discarded : resolved, error);
  if (error) throw_errno(folder, "cannot be removed", error.value());
}

}  // namespace acc::detail
