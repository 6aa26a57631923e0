// SPDX-License-Identifier: Apache-2.0
#include "acc/launch/descendants.hpp"

#include <fcntl.h>
#include <signal.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <map>
#include <optional>
#include <string>
#include <string_view>

#include "acc/base/text.hpp"

namespace acc::launcher {
namespace {

namespace fs = std::filesystem;

// The fourth word of /proc/PID/stat. The second is the name in brackets, which may hold blanks and brackets.
std::optional<pid_t> parent_of(const fs::path& process) {
  const Descriptor file(::open((process / "stat").c_str(), O_RDONLY | O_CLOEXEC));
  char buffer[512];
  const ssize_t size = file ? ::read(file.get(), buffer, sizeof buffer) : -1;
  if (size <= 0) return std::nullopt;
  const std::string_view text(buffer, static_cast<std::size_t>(size));
  const std::size_t name_end = text.rfind(')');
  if (name_end == std::string_view::npos) return std::nullopt;
  const std::vector<std::string> words = split(text.substr(name_end), ' ');  // ")", state, parent, ...
  const auto parent = words.size() > 2 ? parse_integer(words[2]) : std::nullopt;
  if (!parent) return std::nullopt;
  return static_cast<pid_t>(*parent);
}

Descriptor open_process(pid_t pid) {
  return Descriptor(static_cast<int>(::syscall(SYS_pidfd_open, pid, 0)));
}

}  // namespace

std::vector<Descendant> descendants_of(pid_t ancestor, const fs::path& proc) {
  std::multimap<pid_t, pid_t> children;
  std::error_code error;
  for (fs::directory_iterator entry(proc, error), end; !error && entry != end; entry.increment(error)) {
    const std::string name = entry->path().filename();
    if (name.find_first_not_of("0123456789") != std::string::npos) continue;
    const auto pid = parse_integer(name);
    if (!pid) continue;
    if (const auto parent = parent_of(entry->path())) children.emplace(*parent, static_cast<pid_t>(*pid));
  }
  std::vector<Descendant> found = {{.pid = ancestor}};
  for (std::size_t i = 0; i < found.size(); ++i) {
    const auto [first, last] = children.equal_range(found[i].pid);
    for (auto child = first; child != last; ++child) {
      found.push_back({.pid = child->second, .parent = child->first});
    }
  }
  found.erase(found.begin());
  return found;
}

Descriptor signal_descendant(const Descendant& descendant, int signal) {
  Descriptor process = open_process(descendant.pid);
  if (!process) return {};
  // With the pidfd in hand the number cannot change its owner any more: look who it is. An orphan has become
  // our child meanwhile.
  const auto parent = parent_of(fs::path("/proc") / std::to_string(descendant.pid));
  if (parent != descendant.parent && parent != ::getpid()) return {};
  if (::syscall(SYS_pidfd_send_signal, process.get(), signal, nullptr, 0) != 0 && errno == EPERM) return {};
  return process;
}

bool reap_orphans(const std::function<bool(pid_t)>& is_ours) {
  for (;;) {
    siginfo_t info = {};
    if (::waitid(P_ALL, 0, &info, WEXITED | WNOHANG | WNOWAIT) != 0) {
      if (errno == EINTR) continue;
      return false;
    }
    // The kernel shows the same child until it is reaped: what stands behind ours comes up once ours is.
    if (info.si_pid == 0 || is_ours(info.si_pid)) return true;
    ::waitpid(info.si_pid, nullptr, WNOHANG);
  }
}

bool kill_descendants() {
  bool found = false;
  const pid_t self = ::getpid();
  while (reap_orphans([](pid_t) { return false; })) {
    int ending = 0;
    for (const Descendant& descendant : descendants_of(self)) {
      if (!signal_descendant(descendant, SIGKILL)) continue;
      found = true;
      if (descendant.parent == self) ++ending;
    }
    // Only what we may not kill is left.
    if (ending == 0) break;
    // The others become our children when their parents are gone, and the next round meets them.
    for (; ending > 0; --ending) {
      while (::waitpid(-1, nullptr, 0) < 0 && errno == EINTR) {
      }
    }
  }
  return found;
}

}  // namespace acc::launcher
