// SPDX-License-Identifier: Apache-2.0
#include "acc/control/runtime_folder.hpp"

#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <memory>
#include <string>

#include "acc/base/error.hpp"

namespace acc::launcher {
namespace {

namespace fs = std::filesystem;

[[noreturn]] void fail(const fs::path& folder, const std::string& what, const std::string& hint) {
  throw Error({.kind = ErrorKind::system, .what = what, .where = folder.string(), .hint = hint});
}

bool is_own_or_sticky(const fs::path& parent) {
  struct stat info = {};
  if (::stat(parent.c_str(), &info) != 0 || !S_ISDIR(info.st_mode)) return false;
  // `su` leaves another user's XDG_RUNTIME_DIR behind: what root made there would be in that user's way.
  return info.st_uid == ::geteuid() || (info.st_mode & S_ISVTX) != 0;
}

}  // namespace

std::vector<fs::path> runtime_folders(const Environment& environment, uid_t user) {
  const std::string number = std::to_string(user);
  std::vector<fs::path> folders;
  const auto add = [&](const fs::path& folder) {
    if (folder.is_absolute() && std::ranges::find(folders, folder) == folders.end())
      folders.push_back(folder);
  };
  const std::string runtime = environment.get("XDG_RUNTIME_DIR");
  const std::string temporary = environment.get("TMPDIR");
  if (!runtime.empty()) add((fs::path(runtime) / "acc").lexically_normal());
  add(fs::path("/run/user") / number / "acc");
  // In memory: where /tmp is on a disk, a socket and a file there cost a tenth of the start of a job.
  add("/dev/shm/acc-" + number);
  // Before TMPDIR, which batch systems choose per job: whoever looks must find it.
  add("/tmp/acc-" + number);
  if (!temporary.empty()) add((fs::path(temporary) / ("acc-" + number)).lexically_normal());
  return folders;
}

Descriptor open_runtime_folder(const fs::path& folder, bool make) {
  if (make && is_own_or_sticky(folder.parent_path())) ::mkdir(folder.c_str(), 0700);
  Descriptor opened(::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
  if (!opened) {
    if (errno == ENOENT || (errno == EACCES && !make)) return {};
    fail(folder, std::string("cannot be used for job sockets: ") + std::strerror(errno), "");
  }
  struct stat info = {};
  if (::fstat(opened.get(), &info) != 0 || info.st_uid != ::geteuid()) {
    fail(folder, "belongs to another user and is not used", "its owner or root should remove it");
  }
  if ((info.st_mode & 077U) != 0) {
    fail(folder, "is open to other users and is not used", "chmod 700 " + folder.string());
  }
  return opened;
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

}  // namespace acc::launcher
