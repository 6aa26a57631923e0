// SPDX-License-Identifier: Apache-2.0
#include "acc/base/topology.hpp"

#include <optional>
#include <string_view>
#include <system_error>

#include "acc/base/files.hpp"
#include "acc/base/text.hpp"

namespace acc {
namespace {

namespace fs = std::filesystem;

std::optional<int> read_number(const fs::path& file) {
  const auto number = parse_integer(first_line_of(file));
  if (!number) return std::nullopt;
  return static_cast<int>(*number);
}

// Of a set that the kernel lists, the lowest CPU stands for all.
std::optional<int> read_lowest(const fs::path& file) {
  const auto cpus = parse_cpu_list(first_line_of(file));
  if (!cpus || cpus->empty()) return std::nullopt;
  return cpus->front();
}

// The numbers N of the entries PREFIX<N> in a folder; none where there is no such folder.
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

// By CPU. A kernel without NUMA has no such folder, and one node.
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
    const int level = read_number(entry / "level").value_or(-1);
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
                             .socket = read_number(folder / "topology/physical_package_id").value_or(0),
                             .core = read_lowest(folder / "topology/thread_siblings_list").value_or(id),
                             .cache = read_last_level_cache(folder / "cache")});
  }
  for (const std::string& device : devices) {
    const auto node = read_number(sysfs / "bus/pci/devices" / device / "numa_node");
    if (node) topology.device_nodes[device] = *node;
  }
  return topology;
}

}  // namespace acc
