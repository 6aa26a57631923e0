// SPDX-License-Identifier: Apache-2.0
#include "acc/launch/exit_status.hpp"

#include <string.h>
#include <sys/wait.h>

#include <string>
#include <string_view>

#include "acc/base/files.hpp"
#include "acc/base/text.hpp"
#include "acc/base/topology.hpp"

namespace acc::launcher {

ExitStatus to_exit_status(int wait_status) {
  if (WIFSIGNALED(wait_status)) return Signaled{WTERMSIG(wait_status), WCOREDUMP(wait_status) != 0};
  return Exited{WEXITSTATUS(wait_status)};
}

bool succeeded(const ExitStatus& status) {
  return status == ExitStatus(Exited{0});
}

int shell_code(const ExitStatus& status) {
  if (const auto* signaled = std::get_if<Signaled>(&status)) return 128 + signaled->signal;
  return std::get<Exited>(status).code;
}

std::string signal_name(int signal) {
  if (signal == SIGRTMIN) return "SIGRTMIN";
  if (signal == SIGRTMAX) return "SIGRTMAX";
  const char* name = ::sigabbrev_np(signal);
  return name != nullptr ? std::string("SIG") + name : "signal " + std::to_string(signal);
}

std::string to_string(const ExitStatus& status) {
  if (const auto* signaled = std::get_if<Signaled>(&status)) {
    return "signal " + std::to_string(signaled->signal) + " (" + signal_name(signaled->signal) +
           (signaled->core_dumped ? ", core dumped)" : ")");
  }
  return "exit code " + std::to_string(std::get<Exited>(status).code);
}

namespace {

namespace fs = std::filesystem;

std::optional<std::uint64_t> read_counter(const fs::path& file, std::string_view name) {
  for (const std::string& line : split(text_of_kernel(file), '\n')) {
    const std::vector<std::string> words = split(line, ' ');
    if (words.size() != 2 || words[0] != name) continue;
    if (const auto count = parse_integer(words[1])) return static_cast<std::uint64_t>(*count);
  }
  return std::nullopt;
}

// In a container the path that the kernel names is often not mounted, and the root is our own group.
std::optional<std::uint64_t> read_counter_of_group(const fs::path& mount, const fs::path& group,
                                                   const char* file) {
  if (const auto count = read_counter(mount / group / file, "oom_kill")) return count;
  return read_counter(mount / file, "oom_kill");
}

}  // namespace

std::optional<std::uint64_t> count_oom_kills(const CgroupPaths& paths) {
  for (const Cgroup& group : read_cgroups(paths.membership)) {
    const fs::path path = fs::path(group.path).relative_path();
    std::optional<std::uint64_t> count;
    if (group.controllers.empty()) {
      count = read_counter_of_group(paths.root, path, "memory.events");
    } else if (group.has("memory")) {
      count = read_counter_of_group(paths.root / "memory", path, "memory.oom_control");
    }
    if (count) return count;
  }
  return std::nullopt;
}

namespace {

std::optional<std::uint64_t> read_bytes(const fs::path& file) {
  const auto bytes = parse_integer(trim(text_of_kernel(file)));
  if (!bytes || *bytes < 0) return std::nullopt;
  return static_cast<std::uint64_t>(*bytes);
}

// The names of the files of cgroup v2 and v1.
struct MemoryFiles {
  const char* limit;
  const char* peak;
};

std::optional<CgroupMemory> tightest_memory(const fs::path& mount, fs::path group, const MemoryFiles& files) {
  // v1 writes a number of about 2^63 where there is no limit.
  constexpr std::uint64_t kNoLimit = std::uint64_t{1} << 62U;
  std::optional<CgroupMemory> tightest;
  for (;; group = group.parent_path()) {
    const fs::path folder = mount / group;
    const auto limit = read_bytes(folder / files.limit);
    if (limit && *limit < kNoLimit && (!tightest || *limit < tightest->limit))
      tightest = {.limit = *limit, .peak = read_bytes(folder / files.peak)};
    if (group.empty()) return tightest;
  }
}

}  // namespace

std::optional<CgroupMemory> cgroup_memory(const CgroupPaths& paths) {
  for (const Cgroup& group : read_cgroups(paths.membership)) {
    const fs::path path = fs::path(group.path).relative_path();
    std::optional<CgroupMemory> memory;
    if (group.controllers.empty()) {
      memory = tightest_memory(paths.root, path, {"memory.max", "memory.peak"});
    } else if (group.has("memory")) {
      memory = tightest_memory(paths.root / "memory", path,
                               {"memory.limit_in_bytes", "memory.max_usage_in_bytes"});
    }
    if (memory) return memory;
  }
  return std::nullopt;
}

bool OomWatch::has_killed() const {
  const auto now = count_oom_kills(paths_);
  return now && *now > before_.value_or(0);
}

}  // namespace acc::launcher
