// SPDX-License-Identifier: Apache-2.0
#include "acc/control/job_file.hpp"

#include <dirent.h>
#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <memory>
#include <string>
#include <string_view>

#include "acc/base/error.hpp"
#include "acc/base/files.hpp"
#include "acc/base/text.hpp"

namespace acc::launcher {
namespace {

namespace fs = std::filesystem;

// Of the names of folders that stand beside those of other users.
constexpr std::string_view kUserPrefix = "acc-";

[[noreturn]] void fail(const fs::path& folder, const std::string& what, const std::string& hint) {
  throw Error({.kind = ErrorKind::system, .what = what, .where = folder.string(), .hint = hint});
}

[[noreturn]] void fail_taken(const fs::path& folder) {
  fail(folder, "belongs to another user and is not used", "ask its owner or root to remove it");
}

bool is_own_or_sticky(const fs::path& parent) {
  struct stat info = {};
  if (::stat(parent.c_str(), &info) != 0 || !S_ISDIR(info.st_mode)) return false;
  // After `su`, XDG_RUNTIME_DIR may be another user's, who could not use a folder that root made there.
  return info.st_uid == ::geteuid() || (info.st_mode & S_ISVTX) != 0;
}

}  // namespace

namespace {

// Also below, without following links.
void permit_changes(const fs::path& folder) {
  std::error_code error;
  fs::permissions(folder, fs::perms::owner_all, fs::perm_options::add, error);
  for (fs::directory_iterator entry(folder, error), end; !error && entry != end; entry.increment(error)) {
    std::error_code ignored;
    if (entry->is_directory(ignored) && !entry->is_symlink(ignored)) permit_changes(entry->path());
  }
}

}  // namespace

bool remove_folder(const fs::path& folder) {
  std::error_code error;
  fs::remove_all(folder, error);
  if (error) {
    permit_changes(folder);
    fs::remove_all(folder, error);
  }
  return !error;
}

std::vector<fs::path> runtime_folders(const Environment& environment, uid_t user) {
  const std::string number = std::to_string(user);
  const std::string name = std::string(kUserPrefix) + number;
  std::vector<fs::path> folders;
  const auto add = [&](const fs::path& folder) {
    if (folder.is_absolute() && std::ranges::find(folders, folder) == folders.end())
      folders.push_back(folder);
  };
  const std::string runtime = environment.get("XDG_RUNTIME_DIR");
  const std::string temporary = environment.get("TMPDIR");
  if (!runtime.empty()) add((fs::path(runtime) / "acc").lexically_normal());
  add(fs::path("/run/user") / number / "acc");
  // In memory: on a disk, a socket and a file take a tenth of a job's start.
  add("/dev/shm/" + name);
  // Before TMPDIR, which batch systems set per job: other commands must find the socket.
  add("/tmp/" + name);
  if (!temporary.empty()) add((fs::path(temporary) / name).lexically_normal());
  return folders;
}

std::vector<RuntimeFolder> all_runtime_folders(const fs::path& root) {
  std::vector<RuntimeFolder> folders;
  const auto look = [&](const char* parent, std::string_view prefix, const char* subfolder) {
    const fs::path parent_path = root / parent;
    std::error_code error;
    for (fs::directory_iterator entry(parent_path, error), end; !error && entry != end;
         entry.increment(error)) {
      const std::string name = entry->path().filename();
      const auto owner = name.starts_with(prefix)
                             ? parse_integer(std::string_view(name).substr(prefix.size()))
                             : std::nullopt;
      if (!owner || *owner < 0) continue;
      // No slash at the end: a link would be followed.
      const fs::path folder = *subfolder == '\0' ? entry->path() : entry->path() / subfolder;
      folders.push_back({.path = folder, .owner = static_cast<uid_t>(*owner)});
    }
  };
  look("run/user", "", "acc");
  look("dev/shm", kUserPrefix, "");
  look("tmp", kUserPrefix, "");
  std::ranges::sort(folders, {}, &RuntimeFolder::path);
  return folders;
}

// After `su` the session's folder is another user's, too, which says nothing.
void require_not_taken(const fs::path& folder, uid_t owner) {
  struct stat info = {};
  const bool is_named_after_owner = folder.filename() == std::string(kUserPrefix) + std::to_string(owner);
  if (is_named_after_owner && ::lstat(folder.c_str(), &info) == 0 && info.st_uid != owner) fail_taken(folder);
}

Descriptor open_runtime_folder(const fs::path& folder, bool make, uid_t owner) {
  if (make && is_own_or_sticky(folder.parent_path())) ::mkdir(folder.c_str(), 0700);
  Descriptor descriptor(::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
  if (!descriptor) {
    const int error = errno;
    if (error == ENOENT || (error == EACCES && !make)) return {};
    require_not_taken(folder, owner);
    fail(folder, std::string("cannot be used for job sockets: ") + std::strerror(error), "");
  }
  struct stat info = {};
  if (::fstat(descriptor.get(), &info) != 0 || info.st_uid != owner) {
    fail_taken(folder);
  }
  if ((info.st_mode & 077U) != 0) {
    fail(folder, "is open to other users and is not used", "chmod 700 " + folder.string());
  }
  return descriptor;
}

std::vector<std::string> names_in(const Descriptor& folder, std::string_view suffix) {
  std::vector<std::string> names;
  const std::unique_ptr<DIR, int (*)(DIR*)> list(
      ::fdopendir(::openat(folder.get(), ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC)), ::closedir);
  if (!list) return names;
  for (const dirent* entry = ::readdir(list.get()); entry != nullptr; entry = ::readdir(list.get())) {
    const std::string_view name = entry->d_name;
    if (!name.starts_with('.') && name.ends_with(suffix)) names.emplace_back(name);
  }
  std::ranges::sort(names);
  return names;
}

namespace {

constexpr std::string_view kJobSuffix = ".job";
constexpr std::string_view kProgressSuffix = ".progress";
constexpr std::string_view kWatchSuffix = ".watch";
constexpr int kMaxOfOneName = 1000;

// Empty if another process has locked it, or it was removed.
Descriptor open_locked(int folder, const std::string& name, int flags) {
  Descriptor file(::openat(folder, name.c_str(), flags | O_RDWR | O_NOFOLLOW | O_CLOEXEC, 0600));
  if (!file || ::flock(file.get(), LOCK_EX | LOCK_NB) != 0) return {};
  struct stat file_info = {};
  struct stat entry_info = {};
  if (::fstat(file.get(), &file_info) != 0 || !S_ISREG(file_info.st_mode)) return {};
  if (::fstatat(folder, name.c_str(), &entry_info, AT_SYMLINK_NOFOLLOW) != 0 ||
      entry_info.st_ino != file_info.st_ino)
    return {};
  return file;
}

// The folders that the file names. What does not end with its NUL was cut when it was written, and would be
// another folder.
std::vector<std::string> folders_in(const Descriptor& file) {
  std::string text;
  std::array<char, 4096> buffer;
  for (ssize_t n = 1; n > 0;) {
    n = ::read(file.get(), buffer.data(), buffer.size());
    if (n > 0) text.append(buffer.data(), static_cast<std::size_t>(n));
  }
  const std::size_t last_end = text.rfind('\0');
  text.resize(last_end == std::string::npos ? 0 : last_end);
  return split(text, '\0');
}

// Whether a job of this id makes folders of this name.
bool has_name_of_job(const fs::path& folder, const std::string& id) {
  const std::string name = folder.filename();
  return name.starts_with(kLogStem) || name.starts_with(kMemoryStem) ||
         name == id + std::string(kWatchSuffix);
}

bool is_own_folder(const fs::path& folder) {
  struct stat info = {};
  return folder.is_absolute() && ::lstat(folder.c_str(), &info) == 0 && S_ISDIR(info.st_mode) &&
         info.st_uid == ::geteuid();
}

// Whether there is no such job any more; a living one stays.
bool remove_job(const Descriptor& descriptor, const fs::path& runtime_folder, const std::string& name) {
  const int folder = descriptor.get();
  const Descriptor file = open_locked(folder, name, 0);
  struct stat info = {};
  if (!file) return ::fstatat(folder, name.c_str(), &info, AT_SYMLINK_NOFOLLOW) != 0;
  const std::string id = name.substr(0, name.size() - kJobSuffix.size());
  for (const std::string& leftover : folders_in(file)) {
    if (has_name_of_job(leftover, id) && is_own_folder(leftover) && !remove_folder(leftover)) return false;
  }
  std::error_code ignored;
  fs::remove_all(runtime_folder / (id + std::string(kProgressSuffix)), ignored);
  const std::string socket = id + ".sock";
  ::unlinkat(folder, socket.c_str(), 0);
  ::unlinkat(folder, ("." + socket).c_str(), 0);
  return ::unlinkat(folder, name.c_str(), 0) == 0;
}

// An empty file that is locked before it gets its name: else another acc might take it for that of a killed
// job, and remove it. Empty, with EEXIST, if a living job has the name.
Descriptor make_locked(const Descriptor& descriptor, const fs::path& path, const std::string& name) {
  const int folder = descriptor.get();
  Descriptor file(::openat(folder, ".", O_TMPFILE | O_RDWR | O_CLOEXEC, 0600));
  if (!file || ::flock(file.get(), LOCK_EX | LOCK_NB) != 0) return {};
  const std::string nameless = "/proc/self/fd/" + std::to_string(file.get());
  while (::linkat(AT_FDCWD, nameless.c_str(), folder, name.c_str(), AT_SYMLINK_FOLLOW) != 0) {
    if (errno != EEXIST) return {};
    if (remove_job(descriptor, path, name)) continue;
    file.reset();
    errno = EEXIST;
    return {};
  }
  return file;
}

}  // namespace

JobFile::JobFile(const std::vector<fs::path>& folders, const std::string& id) : id_(id) {
  for (const fs::path& path : folders) {
    try {
      folder_ = open_runtime_folder(path, true);
    } catch (const Error&) {
      continue;
    }
    if (!folder_) continue;
    // Containers that share the folder count their processes from 1.
    for (int number = 1; !file_ && number <= kMaxOfOneName; ++number) {
      id_ = number == 1 ? id : id + "-" + std::to_string(number);
      file_ = make_locked(folder_, path, name());
      if (!file_ && errno != EEXIST) break;
    }
    if (file_) {
      path_ = path;
      return;
    }
    id_ = id;
  }
}

std::string JobFile::name() const {
  return id_ + std::string(kJobSuffix);
}

void JobFile::add(const fs::path& folder) {
  if (!file_) return;
  const off_t end = ::lseek(file_.get(), 0, SEEK_END);
  if (write_all(file_.get(), folder.string() + '\0')) return;
  // A part of the path, on a full disk, would be taken for the beginning of the next one.
  if (::ftruncate(file_.get(), end) == 0) ::lseek(file_.get(), end, SEEK_SET);
}

fs::path JobFile::progress_folder() const {
  return file_ ? path_ / (id_ + std::string(kProgressSuffix)) : fs::path();
}

fs::path JobFile::watch_folder() const {
  return file_ ? path_ / (id_ + std::string(kWatchSuffix)) : fs::path();
}

void JobFile::remove() const {
  if (file_) ::unlinkat(folder_.get(), name().c_str(), 0);
}

void JobFile::remove_socket() const {
  if (file_) ::unlinkat(folder_.get(), (id_ + ".sock").c_str(), 0);
}

void remove_leftovers(const std::vector<fs::path>& folders) {
  for (const fs::path& path : folders) {
    try {
      const Descriptor folder = open_runtime_folder(path, false);
      if (!folder) continue;
      for (const std::string& name : names_in(folder, kJobSuffix)) remove_job(folder, path, name);
    } catch (const Error&) {
      continue;
    }
  }
}

}  // namespace acc::launcher
