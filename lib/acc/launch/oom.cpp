// SPDX-License-Identifier: Apache-2.0
#include "acc/launch/oom.hpp"

#include <fstream>
#include <string>
#include <string_view>

#include "acc/base/text.hpp"

namespace acc::launcher {
namespace {

namespace fs = std::filesystem;

std::optional<std::uint64_t> read_counter(const fs::path& file, std::string_view name) {
  std::ifstream in(file);
  for (std::string line; std::getline(in, line);) {
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

std::optional<std::uint64_t> count_oom_kills(const CgroupPlaces& places) {
  std::ifstream groups(places.membership);
  std::optional<std::uint64_t> count;
  for (std::string line; std::getline(groups, line) && !count;) {
    const std::vector<std::string> parts = split(line, ':');
    if (parts.size() < 3) continue;
    const fs::path group = fs::path(parts[2]).relative_path();
    if (parts[1].empty()) {
      count = read_counter_of_group(places.root, group, "memory.events");
    } else if (("," + parts[1] + ",").find(",memory,") != std::string::npos) {
      count = read_counter_of_group(places.root / "memory", group, "memory.oom_control");
    }
  }
  return count;
}

bool OomWatch::has_killed() const {
  const auto now = count_oom_kills(places_);
  return now && *now > before_.value_or(0);
}

}  // namespace acc::launcher
