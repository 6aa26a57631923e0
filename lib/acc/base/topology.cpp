// SPDX-License-Identifier: Apache-2.0
#include "acc/base/topology.hpp"

#include <sched.h>

#include <algorithm>
#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <system_error>
#include <vector>

#include "acc/base/files.hpp"
#include "acc/base/text.hpp"

namespace acc {
namespace {

// More CPUs than any Linux can have; a smaller set fails on machines with more than 1024.
constexpr int kMaxCpus = 8192;

}  // namespace

std::optional<CpuSet> parse_cpu_list(std::string_view text) {
  CpuSet cpus;
  if (trim(text).empty()) return cpus;
  for (const std::string& range : split(trim(text), ',')) {
    const std::vector<std::string> ends = split(range, '-');
    const auto first = parse_integer(ends.front());
    const auto last = parse_integer(ends.back());
    if (ends.size() > 2 || !first || !last || *first < 0 || *last < *first || *last >= kMaxCpus) {
      return std::nullopt;
    }
    for (auto cpu = *first; cpu <= *last; ++cpu) cpus.push_back(static_cast<int>(cpu));
  }
  std::ranges::sort(cpus);
  cpus.erase(std::ranges::unique(cpus).begin(), cpus.end());
  return cpus;
}

std::string format_cpu_list(const CpuSet& cpus) {
  std::string text;
  for (std::size_t first = 0; first < cpus.size();) {
    std::size_t last = first;
    while (last + 1 < cpus.size() && cpus[last + 1] == cpus[last] + 1) ++last;
    if (!text.empty()) text += ',';
    text += std::to_string(cpus[first]);
    if (last > first) text += '-' + std::to_string(cpus[last]);
    first = last + 1;
  }
  return text;
}

CpuSet allowed_cpus() {
  cpu_set_t* set = CPU_ALLOC(kMaxCpus);
  const std::size_t size = CPU_ALLOC_SIZE(kMaxCpus);
  CpuSet cpus;
  if (set != nullptr && ::sched_getaffinity(0, size, set) == 0) {
    cpus.reserve(static_cast<std::size_t>(CPU_COUNT_S(size, set)));
    for (int cpu = 0; cpus.size() < cpus.capacity(); ++cpu) {
      if (CPU_ISSET_S(cpu, size, set)) cpus.push_back(cpu);
    }
  }
  CPU_FREE(set);
  return cpus;
}

namespace {

namespace fs = std::filesystem;

std::optional<int> number_in(const fs::path& file) {
  const auto number = parse_integer(first_line_of(file));
  if (!number) return std::nullopt;
  return static_cast<int>(*number);
}

// Identifies a CPU list (siblings of a core, of a cache) by its lowest CPU number.
std::optional<int> read_lowest(const fs::path& file) {
  const auto cpus = parse_cpu_list(first_line_of(file));
  if (!cpus || cpus->empty()) return std::nullopt;
  return cpus->front();
}

// The numbers N of the entries PREFIX<N> in a folder; none if the folder is missing.
std::vector<int> numbered_entries(const fs::path& folder, std::string_view prefix) {
  std::vector<int> numbers;
  std::error_code error;
  for (fs::directory_iterator entry(folder, error), end; !error && entry != end; entry.increment(error)) {
    const std::string name = entry->path().filename();
    if (!name.starts_with(prefix)) continue;
    if (const auto number = parse_integer(name.substr(prefix.size()))) {
      numbers.push_back(static_cast<int>(*number));
    }
  }
  return numbers;
}

// NUMA nodes by CPU. A kernel without NUMA has no such folder, and one node.
std::map<int, int> read_nodes(const fs::path& sysfs) {
  std::map<int, int> nodes;
  const fs::path folder = sysfs / "devices/system/node";
  for (const int node : numbered_entries(folder, "node")) {
    const auto cpus = parse_cpu_list(first_line_of(folder / ("node" + std::to_string(node)) / "cpulist"));
    for (const int cpu : cpus.value_or(CpuSet{})) nodes[cpu] = node;
  }
  return nodes;
}

int read_last_level_cache(const fs::path& folder) {
  int cache = -1;
  int highest = -1;
  for (const int index : numbered_entries(folder, "index")) {
    const fs::path entry = folder / ("index" + std::to_string(index));
    const std::string type = first_line_of(entry / "type");
    const int level = number_in(entry / "level").value_or(-1);
    if ((type != "Unified" && type != "Data") || level <= highest) continue;
    highest = level;
    cache = read_lowest(entry / "shared_cpu_list").value_or(-1);
  }
  return cache;
}

}  // namespace

Topology read_topology(const CpuSet& cpus, const std::vector<std::string>& devices, const fs::path& sysfs) {
  Topology topology;
  const std::map<int, int> nodes = read_nodes(sysfs);
  for (const int id : cpus) {
    const fs::path folder = sysfs / "devices/system/cpu" / ("cpu" + std::to_string(id));
    const auto node = nodes.find(id);
    topology.cpus.push_back({.id = id,
                             .numa_node = node == nodes.end() ? 0 : node->second,
                             .socket = number_in(folder / "topology/physical_package_id").value_or(0),
                             .core = read_lowest(folder / "topology/thread_siblings_list").value_or(id),
                             .cache = read_last_level_cache(folder / "cache")});
  }
  for (const std::string& device : devices) {
    const auto node = number_in(sysfs / "bus/pci/devices" / device / "numa_node");
    if (node) topology.device_nodes[device] = *node;
  }
  return topology;
}

namespace {

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

// A container may not see the cgroup folder of its process; the root is then its own.
template <typename QuotaOf>
std::optional<double> tightest(const fs::path& root, fs::path group, QuotaOf quota_of) {
  std::optional<double> min;
  for (;; group = group.parent_path()) {
    if (const auto quota = quota_of(root / group.relative_path()))
      min = std::min(min.value_or(*quota), *quota);
    if (!group.has_relative_path()) return min;
  }
}

}  // namespace

bool Cgroup::has(std::string_view controller) const {
  return std::ranges::find(controllers, controller) != controllers.end();
}

std::vector<Cgroup> read_cgroups(const fs::path& membership) {
  std::vector<Cgroup> groups;
  for (const std::string& line : split(text_of_kernel(membership), '\n')) {
    const std::vector<std::string> parts = split(line, ':');
    if (parts.size() < 3) continue;
    groups.push_back({.path = parts[2]});
    if (!parts[1].empty()) groups.back().controllers = split(parts[1], ',');
  }
  return groups;
}

std::optional<double> cgroup_cpu_quota(const fs::path& groups, const fs::path& root) {
  for (const Cgroup& group : read_cgroups(groups)) {
    if (!group.path.starts_with('/')) continue;
    if (group.controllers.empty()) {
      if (const auto quota = tightest(root, group.path, quota_of_v2)) return quota;
    } else if (group.has("cpu")) {
      if (const auto quota = tightest(root / "cpu", group.path, quota_of_v1)) return quota;
    }
  }
  return std::nullopt;
}

}  // namespace acc
