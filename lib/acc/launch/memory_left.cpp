// SPDX-License-Identifier: Apache-2.0
#include "acc/launch/memory_left.hpp"

#include <algorithm>
#include <string>
#include <string_view>

#include "acc/base/files.hpp"
#include "acc/base/text.hpp"
#include "acc/base/topology.hpp"

namespace acc::launcher {
namespace {

namespace fs = std::filesystem;

/// The names of cgroup v2 and v1.
struct MemoryNames {
  const char* limit;
  const char* usage;
  const char* inactive_file;
  const char* active_file;
};
constexpr MemoryNames kNamesOfV2 = {"memory.max", "memory.current", "inactive_file", "active_file"};
constexpr MemoryNames kNamesOfV1 = {"memory.limit_in_bytes", "memory.usage_in_bytes", "total_inactive_file",
                                    "total_active_file"};

std::optional<std::uint64_t> bytes_in(std::string_view text) {
  const auto bytes = parse_integer(trim(text));
  return bytes && *bytes >= 0 ? std::optional(static_cast<std::uint64_t>(*bytes)) : std::nullopt;
}

// Of memory.stat: `inactive_file 4096`.
std::uint64_t file_pages(const fs::path& group, const MemoryNames& names) {
  std::uint64_t sum = 0;
  for (const std::string& line : split(text_of_kernel(group / "memory.stat"), '\n')) {
    const std::size_t blank = line.find(' ');
    const std::string_view name = std::string_view(line).substr(0, blank);
    if (blank != std::string::npos && (name == names.inactive_file || name == names.active_file))
      sum += bytes_in(std::string_view(line).substr(blank)).value_or(0);
  }
  return sum;
}

std::optional<MemoryLeft> left_by(const fs::path& group, const MemoryNames& names) {
  // v1 writes a number of about 2^63 where there is no limit.
  constexpr std::uint64_t kNoLimit = std::uint64_t{1} << 62U;
  const auto limit = bytes_in(text_of_kernel(group / names.limit));
  const auto usage = bytes_in(text_of_kernel(group / names.usage));
  if (!limit || !usage || *limit >= kNoLimit) return std::nullopt;
  const std::uint64_t held = *usage - std::min(*usage, file_pages(group, names));
  return MemoryLeft{.bytes = *limit - std::min(*limit, held), .limit = *limit};
}

// In a container the path that the kernel names is often not mounted, and the root is our own group.
std::optional<MemoryLeft> least_left(const fs::path& mount, fs::path group, const MemoryNames& names) {
  std::optional<MemoryLeft> least;
  for (;; group = group.parent_path()) {
    const auto left = left_by(mount / group, names);
    if (left && (!least || left->bytes < least->bytes)) least = left;
    if (group.empty()) return least;
  }
}

}  // namespace

std::optional<MemoryLeft> machine_memory_left(const fs::path& meminfo) {
  constexpr std::uint64_t kUnit = 1024;  // `MemTotal:  24683648 kB`
  std::optional<std::uint64_t> total;
  std::optional<std::uint64_t> available;
  for (const std::string& line : split(text_of_kernel(meminfo), '\n')) {
    const std::string_view text = line;
    const std::size_t colon = text.find(':');
    const std::size_t unit = text.rfind(" kB");
    if (colon == std::string_view::npos || unit == std::string_view::npos || unit < colon) continue;
    const auto value = bytes_in(text.substr(colon + 1, unit - colon - 1));
    if (text.starts_with("MemTotal:")) total = value;
    if (text.starts_with("MemAvailable:")) available = value;
  }
  if (!total || !available) return std::nullopt;
  return MemoryLeft{.bytes = *available * kUnit, .limit = *total * kUnit};
}

std::optional<MemoryLeft> cgroup_memory_left(const CgroupPaths& paths) {
  for (const Cgroup& group : read_cgroups(paths.membership)) {
    const fs::path path = fs::path(group.path).relative_path();
    std::optional<MemoryLeft> memory;
    if (group.controllers.empty()) {
      memory = least_left(paths.root, path, kNamesOfV2);
    } else if (group.has("memory")) {
      memory = least_left(paths.root / "memory", path, kNamesOfV1);
    }
    if (memory) return memory;
  }
  return std::nullopt;
}

}  // namespace acc::launcher
