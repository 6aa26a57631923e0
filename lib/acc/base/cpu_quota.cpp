// SPDX-License-Identifier: Apache-2.0
#include "acc/base/cpu_quota.hpp"

#include <algorithm>
#include <fstream>
#include <string>
#include <vector>

#include "acc/base/files.hpp"
#include "acc/base/text.hpp"

namespace acc {
namespace {

namespace fs = std::filesystem;

std::optional<double> share(const std::string& quota_text, const std::string& period_text) {
  const auto quota = parse_number(quota_text);
  const auto period = parse_number(period_text);
  if (!quota || !period || *quota <= 0 || *period <= 0) return std::nullopt;
  return *quota / *period;
}

std::optional<double> quota_of_v2(const fs::path& group) {
  const std::vector<std::string> words = split(first_line_of(group / "cpu.max"), ' ');
  return words.size() == 2 ? share(words[0], words[1]) : std::nullopt;
}

std::optional<double> quota_of_v1(const fs::path& group) {
  return share(first_line_of(group / "cpu.cfs_quota_us"), first_line_of(group / "cpu.cfs_period_us"));
}

// A container may not see the folder that its process is said to be in; the root is then its own.
template <typename QuotaOf>
std::optional<double> tightest(const fs::path& root, fs::path group, QuotaOf quota_of) {
  std::optional<double> least;
  for (;; group = group.parent_path()) {
    if (const auto quota = quota_of(root / group.relative_path()))
      least = std::min(least.value_or(*quota), *quota);
    if (!group.has_relative_path()) return least;
  }
}

}  // namespace

std::optional<double> cgroup_cpu_quota(const fs::path& groups, const fs::path& root) {
  std::ifstream in(groups);
  for (std::string line; std::getline(in, line);) {
    const std::vector<std::string> parts = split(line, ':');
    if (parts.size() < 3 || !parts[2].starts_with('/')) continue;
    if (parts[1].empty()) {
      if (const auto quota = tightest(root, parts[2], quota_of_v2)) return quota;
    } else if (("," + parts[1] + ",").find(",cpu,") != std::string::npos) {
      if (const auto quota = tightest(root / "cpu", parts[2], quota_of_v1)) return quota;
    }
  }
  return std::nullopt;
}

}  // namespace acc
