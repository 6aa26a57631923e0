// SPDX-License-Identifier: Apache-2.0
#include "acc/launch/pid_namespace.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <sched.h>
#include <sys/mount.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstring>
#include <string>
#include <string_view>

#include "acc/base/error.hpp"
#include "acc/base/files.hpp"
#include "acc/base/text.hpp"

namespace acc::launcher {
namespace {

[[noreturn]] void fail(const char* what) {
  const int reason = errno;
  throw Error({.kind = ErrorKind::system,
               .what = fmt::format("the system does not allow it: {}: {}", what, std::strerror(reason)),
               .where = "--pid-namespace",
               .hint = "it takes root, or users that may make namespaces"});
}

bool write_to(const char* file, const std::string& text) {
  const Descriptor fd(::open(file, O_WRONLY | O_CLOEXEC));
  return fd && write_all(fd.get(), text);
}

pid_t to_number(std::string_view text) {
  return static_cast<pid_t>(parse_integer(trim(text)).value_or(0));
}

}  // namespace

void enter_pid_namespace() {
  if (::unshare(CLONE_NEWPID) == 0) return;
  if (errno != EPERM) fail("a pid namespace");
  const uid_t user = ::geteuid();
  const gid_t group = ::getegid();
  if (::unshare(CLONE_NEWUSER | CLONE_NEWPID) != 0) fail("a user namespace");
  if (!write_to("/proc/self/setgroups", "deny") ||
      !write_to("/proc/self/uid_map", fmt::format("{0} {0} 1", user)) ||
      !write_to("/proc/self/gid_map", fmt::format("{0} {0} 1", group)))
    fail("a user namespace");
}

// A mount of its own propagates nothing outside, and still sees what is mounted there later.
OutsideNumbers::OutsideNumbers() : proc_(::open("/proc", O_RDONLY | O_DIRECTORY | O_CLOEXEC)) {
  if (!proc_ || ::unshare(CLONE_NEWNS) != 0 ||
      ::mount("none", "/", nullptr, MS_REC | MS_SLAVE, nullptr) != 0 ||
      ::mount("proc", "/proc", "proc", MS_NOSUID | MS_NODEV | MS_NOEXEC, nullptr) != 0)
    fail("/proc");
}

// The kernel numbers what it shows in /proc for those who mounted it.
pid_t OutsideNumbers::of(int pidfd) const {
  const std::string name = fmt::format("self/fdinfo/{}", pidfd);
  const Descriptor file(::openat(proc_.get(), name.c_str(), O_RDONLY | O_CLOEXEC));
  std::array<char, 512> buffer;
  const ssize_t size = file ? ::read(file.get(), buffer.data(), buffer.size()) : -1;
  if (size <= 0) return 0;
  for (const std::string& line :
       split(std::string_view(buffer.data(), static_cast<std::size_t>(size)), '\n')) {
    if (line.starts_with("Pid:")) return to_number(std::string_view(line).substr(4));
  }
  return 0;
}

pid_t OutsideNumbers::own() const {
  std::array<char, 32> buffer;
  const ssize_t size = ::readlinkat(proc_.get(), "self", buffer.data(), buffer.size());
  return size <= 0 ? 0 : to_number({buffer.data(), static_cast<std::size_t>(size)});
}

}  // namespace acc::launcher
