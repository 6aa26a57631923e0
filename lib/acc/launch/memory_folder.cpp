// SPDX-License-Identifier: Apache-2.0
#include "acc/launch/memory_folder.hpp"

#include <fmt/format.h>
#include <linux/magic.h>
#include <sched.h>
#include <sys/mount.h>
#include <sys/statfs.h>

#include <cerrno>
#include <fstream>
#include <limits>
#include <string_view>
#include <system_error>

#include "acc/base/short_size.hpp"
#include "acc/control/job_file.hpp"
#include "acc/control/job_table.hpp"
#include "acc/launch/unique_folder.hpp"

namespace acc::launcher {
namespace {

namespace fs = std::filesystem;

// Of a file system in memory; 0 for others.
std::uint64_t free_memory_in(const fs::path& folder) {
  struct statfs about = {};
  if (::statfs(folder.c_str(), &about) != 0 || about.f_type != TMPFS_MAGIC) return 0;
  const bool has_limit = about.f_blocks != 0;
  if (!has_limit) return std::numeric_limits<std::uint64_t>::max();
  return static_cast<std::uint64_t>(about.f_bavail) * static_cast<std::uint64_t>(about.f_bsize);
}

// For this process and its descendants alone; later mounts outside are still seen here. It goes with the last
// of them.
bool mount_memory(const fs::path& folder, std::uint64_t bytes) {
  // Outside the folder is not empty, so that it is not removed: that would take the mount away.
  std::ofstream(folder / "mounted") << "for a running job of acc\n";
  const std::string options = fmt::format("size={},mode=0700", bytes);
  return ::unshare(CLONE_NEWNS) == 0 && ::mount("none", "/", nullptr, MS_REC | MS_SLAVE, nullptr) == 0 &&
         ::mount("none", folder.c_str(), "tmpfs", MS_NOSUID | MS_NODEV, options.c_str()) == 0;
}

[[noreturn]] void refuse(const MemoryRequest& request, const fs::path& shared_memory, std::uint64_t free) {
  throw Error(
      {.kind = ErrorKind::system,
       .what = fmt::format("{} has {} free, and {} are asked for", shared_memory.string(), short_size(free),
                           short_size(request.bytes)),
       .where = request.origin,
       .hint = "give a container more: docker run --shm-size, in Kubernetes an emptyDir with medium: Memory "
               "at /dev/shm"});
}

}  // namespace

std::optional<Problem> lack_of_memory(const MemoryRequest& request, const std::optional<MemoryLeft>& machine,
                                      const std::optional<MemoryLeft>& cgroup) {
  const auto lack = [&](const std::optional<MemoryLeft>& memory, std::string_view whose, const char* hint) {
    if (!memory || memory->bytes >= request.bytes) return std::optional<Problem>();
    return std::optional(
        Problem{.what = fmt::format("{} are asked for, and {} of {} leaves {}", short_size(request.bytes),
                                    whose, short_size(memory->limit), short_size(memory->bytes)),
                .where = request.origin,
                .hint = hint});
  };
  if (auto problem =
          lack(cgroup, "the memory limit", "the folder counts to that limit: raise it, or ask for less"))
    return problem;
  return lack(machine, "this machine's memory", "ask for less");
}

MemoryFolder MemoryFolder::make(const MemoryRequest& request,
                                const std::function<void(const fs::path&)>& before,
                                const fs::path& shared_memory) {
  if (const auto lack = lack_of_memory(request, machine_memory_left(), cgroup_memory_left()))
    throw Error({.kind = ErrorKind::system, .what = lack->what, .where = lack->where, .hint = lack->hint});
  MemoryFolder made;
  const std::uint64_t free = free_memory_in(shared_memory);
  made.path_ = make_unique_folder(shared_memory / kMemoryStem, before);
  if (free >= request.bytes && !made.path_.empty()) return made;
  if (made.path_.empty()) made.path_ = make_unique_folder(fs::path("/tmp") / kMemoryStem, before);
  made.is_mounted_ = !made.path_.empty() && mount_memory(made.path_, request.bytes);
  if (made.is_mounted_) return made;
  made.remove();
  refuse(request, shared_memory, free);
}

bool MemoryFolder::remove() const {
  if (path_.empty()) return true;
  if (is_mounted_) ::umount2(path_.c_str(), MNT_DETACH);
  return remove_folder(path_);
}

}  // namespace acc::launcher
