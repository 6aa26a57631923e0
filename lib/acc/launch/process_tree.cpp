// SPDX-License-Identifier: Apache-2.0
#include "acc/launch/process_tree.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <sys/mount.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <optional>
#include <set>
#include <string>
#include <string_view>

#include "acc/base/error.hpp"
#include "acc/base/files.hpp"
#include "acc/base/stat_line.hpp"
#include "acc/base/text.hpp"
#include "acc/control/process_table.hpp"
#include "acc/control/rank_state.hpp"

namespace acc::launcher {
namespace {

namespace fs = std::filesystem;

std::optional<pid_t> parent_of(const fs::path& process) {
  constexpr int kParentField = 4;
  const Descriptor file(::open((process / "stat").c_str(), O_RDONLY | O_CLOEXEC));
  char buffer[512];
  const ssize_t size = file ? ::read(file.get(), buffer, sizeof buffer) : -1;
  if (size <= 0) return std::nullopt;
  const auto line = parse_stat_line(std::string_view(buffer, static_cast<std::size_t>(size)));
  const auto parent = line ? parse_integer(line->field(kParentField)) : std::nullopt;
  if (!parent) return std::nullopt;
  return static_cast<pid_t>(*parent);
}

// Whether the set of this name in a status file of proc(5), a number in hexadecimal, has the signal.
bool is_in_set(const fs::path& status, std::string_view name, int signal) {
  for (const std::string& line : split(text_of_kernel(status), '\n')) {
    if (!line.starts_with(name)) continue;
    const unsigned long long set = std::strtoull(line.c_str() + name.size(), nullptr, 16);
    return (set >> static_cast<unsigned>(signal - 1) & 1U) != 0;
  }
  return false;
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
  std::vector<Descendant> descendants = {{.pid = ancestor}};
  for (std::size_t i = 0; i < descendants.size(); ++i) {
    const auto [first, last] = children.equal_range(descendants[i].pid);
    for (auto child = first; child != last; ++child) {
      descendants.push_back({.pid = child->second, .parent = child->first});
    }
  }
  descendants.erase(descendants.begin());
  return descendants;
}

bool handles_signal(pid_t process, int signal, const fs::path& proc) {
  const fs::path folder = proc / std::to_string(process);
  if (is_in_set(folder / "status", "SigCgt:", signal)) return true;
  int threads = 0;
  std::error_code error;
  for (fs::directory_iterator thread(folder / "task", error), end; !error && thread != end;
       thread.increment(error)) {
    if (!is_in_set(thread->path() / "status", "SigBlk:", signal)) return false;
    ++threads;
  }
  return threads > 0;
}

Descriptor signal_descendant(const Descendant& descendant, int signal) {
  Descriptor process = open_process(descendant.pid);
  if (!process) return {};
  // With an open pidfd the pid cannot be reused any more: check that it is still the same process. An orphan
  // has become our child meanwhile.
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
    // waitid() returns the same child until it is reaped; others come after it.
    if (info.si_pid == 0 || is_ours(info.si_pid)) return true;
    ::waitpid(info.si_pid, nullptr, WNOHANG);
  }
}

InheritedProcesses::InheritedProcesses() {
  siginfo_t info = {};
  if (::waitid(P_ALL, 0, &info, WEXITED | WNOHANG | WNOWAIT) != 0) return;  // there is no child
  for (const Descendant& descendant : descendants_of(::getpid())) {
    if (const auto process = read_process(descendant.pid)) started_.emplace(process->pid, process->started);
  }
}

bool InheritedProcesses::contains(pid_t pid) const {
  const auto process = started_.find(pid);
  if (process == started_.end()) return false;
  const auto now = read_process(pid);
  return now && now->started == process->second;
}

// Its threads can still do so when it has ended itself.
std::optional<std::string> wait_in_kernel(pid_t pid) {
  for (const ThreadWait& thread : threads_of(pid))
    if (thread.state == 'D') return thread.kernel;
  return std::nullopt;
}

namespace {

// Reaps a child that was killed. Returns false if it cannot be killed. To free much memory takes a while,
// too.
bool wait_for_killed(pid_t pid) {
  constexpr int kPatienceMs = 30'000;
  const Descriptor process = open_process(pid);
  pollfd ends = {.fd = process.get(), .events = POLLIN, .revents = 0};
  int ready = 0;
  while (process && (ready = ::poll(&ends, 1, kPatienceMs)) <= 0) {
    if (ready == 0 && wait_in_kernel(pid)) return false;
  }
  while (::waitpid(pid, nullptr, 0) < 0 && errno == EINTR) {
  }
  return true;
}

}  // namespace

bool kill_descendants(const std::function<bool(pid_t)>& spared) {
  bool has_killed = false;
  const pid_t self = ::getpid();
  while (reap_orphans([](pid_t) { return false; })) {
    std::vector<pid_t> ending;
    std::set<pid_t> spared_trees;
    for (const Descendant& descendant : descendants_of(self)) {
      if (spared_trees.contains(descendant.parent) || spared(descendant.pid)) {
        spared_trees.insert(descendant.pid);
        continue;
      }
      if (!signal_descendant(descendant, SIGKILL)) continue;
      has_killed = true;
      if (descendant.parent == self) ending.push_back(descendant.pid);
    }
    // We may not kill the rest.
    if (ending.empty()) break;
    // The others become our children when their parents have ended, and are killed in the next round.
    if (!std::ranges::all_of(ending, wait_for_killed)) break;
  }
  return has_killed;
}

namespace {

[[noreturn]] void refuse_namespace(const char* what) {
  const int reason = errno;
  throw Error({.kind = ErrorKind::system,
               .what = fmt::format("the system does not allow this: {}: {}", what, std::strerror(reason)),
               .where = "--pid-namespace",
               .hint = "run as root, or allow unprivileged user namespaces"});
}

bool write_to(const char* file, const std::string& text) {
  const Descriptor fd(::open(file, O_WRONLY | O_CLOEXEC));
  return fd && write_all(fd.get(), text);
}

pid_t to_pid(std::string_view text) {
  return static_cast<pid_t>(parse_integer(trim(text)).value_or(0));
}

}  // namespace

void enter_pid_namespace() {
  if (::unshare(CLONE_NEWPID) == 0) return;
  if (errno != EPERM) refuse_namespace("a pid namespace");
  const uid_t user = ::geteuid();
  const gid_t group = ::getegid();
  if (::unshare(CLONE_NEWUSER | CLONE_NEWPID) != 0) refuse_namespace("a user namespace");
  if (!write_to("/proc/self/setgroups", "deny") ||
      !write_to("/proc/self/uid_map", fmt::format("{0} {0} 1", user)) ||
      !write_to("/proc/self/gid_map", fmt::format("{0} {0} 1", group)))
    refuse_namespace("a user namespace");
}

// A private mount namespace: nothing propagates outside, and later mounts there are still seen (MS_SLAVE).
HostPids::HostPids() : proc_(::open("/proc", O_RDONLY | O_DIRECTORY | O_CLOEXEC)) {
  if (!proc_ || ::unshare(CLONE_NEWNS) != 0 ||
      ::mount("none", "/", nullptr, MS_REC | MS_SLAVE, nullptr) != 0 ||
      ::mount("proc", "/proc", "proc", MS_NOSUID | MS_NODEV | MS_NOEXEC, nullptr) != 0)
    refuse_namespace("/proc");
}

// /proc shows pids of the namespace in which it was mounted.
pid_t HostPids::of(pid_t child) const {
  const Descriptor pidfd = open_process(child);
  const std::string name = fmt::format("self/fdinfo/{}", pidfd.get());
  const Descriptor file(::openat(proc_.get(), name.c_str(), O_RDONLY | O_CLOEXEC));
  std::array<char, 512> buffer;
  const ssize_t size = file ? ::read(file.get(), buffer.data(), buffer.size()) : -1;
  if (size <= 0) return 0;
  for (const std::string& line :
       split(std::string_view(buffer.data(), static_cast<std::size_t>(size)), '\n')) {
    if (line.starts_with("Pid:")) return to_pid(std::string_view(line).substr(4));
  }
  return 0;
}

pid_t HostPids::own() const {
  std::array<char, 32> buffer;
  const ssize_t size = ::readlinkat(proc_.get(), "self", buffer.data(), buffer.size());
  return size <= 0 ? 0 : to_pid({buffer.data(), static_cast<std::size_t>(size)});
}

}  // namespace acc::launcher
