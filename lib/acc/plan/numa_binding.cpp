// SPDX-License-Identifier: Apache-2.0
#include "acc/plan/numa_binding.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <map>
#include <set>

#include "acc/plan/usage_error.hpp"

namespace acc::launcher {
namespace {

/// The share of a NUMA node that a worker gets: number `index` of the `workers` bound to it.
struct Share {
  int node = 0;
  std::size_t index = 0;
  std::size_t workers = 1;
};

class Binder {
 public:
  Binder(const Topology& topology, const std::string& origin) : topology_(topology), origin_(origin) {}

  CpuBinding bind(NumaBinding binding, const Share& share) const {
    const std::vector<Cpu> local = cpus_where(&Cpu::numa_node, share.node);
    if (local.empty()) {
      fail(origin_, fmt::format("NUMA node {} has none of the CPUs that acc may use", share.node),
           "widen the affinity mask or the cpuset of acc");
    }
    switch (binding) {
      case NumaBinding::node:
        return to_binding(local);
      case NumaBinding::socket:
        return to_binding(socket_of(local.front()));
      case NumaBinding::exclusive:
        return to_binding(own_cores(local, share));
      case NumaBinding::core_complex:
        return to_binding(core_complex(local, share));
    }
    return {};
  }

 private:
  std::vector<Cpu> cpus_where(int Cpu::* member, int value) const {
    std::vector<Cpu> cpus;
    std::ranges::copy_if(topology_.cpus, std::back_inserter(cpus),
                         [&](const Cpu& cpu) { return cpu.*member == value; });
    return cpus;
  }

  // As in torchrun a node belongs to the socket of its lowest CPU and is used as a whole.
  std::vector<Cpu> socket_of(const Cpu& lowest) const {
    std::map<int, int> socket_of_node;
    for (const Cpu& cpu : topology_.cpus) socket_of_node.emplace(cpu.numa_node, cpu.socket);
    std::vector<Cpu> cpus;
    std::ranges::copy_if(topology_.cpus, std::back_inserter(cpus),
                         [&](const Cpu& cpu) { return socket_of_node.at(cpu.numa_node) == lowest.socket; });
    return cpus;
  }

  // The first workers get one of the remaining cores each.
  std::vector<Cpu> own_cores(const std::vector<Cpu>& local, const Share& share) const {
    std::map<int, std::vector<Cpu>> cores;
    for (const Cpu& cpu : local) cores[cpu.core].push_back(cpu);
    if (cores.size() < share.workers) {
      fail(origin_, fmt::format("exclusive needs a core per worker, but NUMA node {} has {} for {}",
                                share.node, cores.size(), share.workers));
    }
    const std::size_t per_worker = cores.size() / share.workers;
    const std::size_t remainder = cores.size() % share.workers;
    const std::size_t first = share.index * per_worker + std::min(share.index, remainder);
    const std::size_t count = per_worker + (share.index < remainder ? 1 : 0);
    std::vector<Cpu> cpus;
    auto core = std::next(cores.begin(), static_cast<std::ptrdiff_t>(first));
    for (std::size_t i = 0; i < count; ++i, ++core) {
      cpus.insert(cpus.end(), core->second.begin(), core->second.end());
    }
    return cpus;
  }

  // Core complexes are used in the order of their size, the largest first.
  std::vector<Cpu> core_complex(const std::vector<Cpu>& local, const Share& share) const {
    std::map<int, std::vector<Cpu>> by_cache;
    for (const Cpu& cpu : local) by_cache[cpu.cache].push_back(cpu);
    if (by_cache.contains(-1)) {
      fail(origin_, "core-complex needs the caches of the CPUs, which the kernel does not report",
           "`node` or `exclusive`");
    }
    std::vector<std::vector<Cpu>> groups;
    for (auto& [cache, cpus] : by_cache) groups.push_back(std::move(cpus));
    std::ranges::stable_sort(groups, std::greater(), [](const auto& group) { return group.size(); });
    return groups[share.index % groups.size()];
  }

  static CpuBinding to_binding(const std::vector<Cpu>& cpus) {
    std::set<int> ids;
    std::set<int> nodes;
    for (const Cpu& cpu : cpus) {
      ids.insert(cpu.id);
      nodes.insert(cpu.numa_node);
    }
    return {.cpus = {ids.begin(), ids.end()}, .numa_nodes = {nodes.begin(), nodes.end()}};
  }

  const Topology& topology_;
  const std::string& origin_;
};

std::set<int> nodes_of(const Topology& topology) {
  std::set<int> nodes;
  for (const Cpu& cpu : topology.cpus) nodes.insert(cpu.numa_node);
  return nodes;
}

int home_of(const Gpu& gpu, const Topology& topology, const std::string& origin) {
  const auto device = topology.device_nodes.find(gpu.pci_address);
  if (device == topology.device_nodes.end()) {
    fail(origin, fmt::format("GPU {} ({}) is not among the kernel's PCI devices", gpu.index,
                             gpu.pci_address.empty() ? "NVML reports no address" : gpu.pci_address));
  }
  if (device->second >= 0) return device->second;
  // On machines with one node the kernel reports none for devices.
  const std::set<int> nodes = nodes_of(topology);
  if (nodes.size() == 1) return *nodes.begin();
  fail(origin,
       fmt::format("the kernel does not know the NUMA node of GPU {} ({})", gpu.index, gpu.pci_address));
}

}  // namespace

Topology topology_of(const Machine& machine) {
  std::vector<std::string> addresses;
  for (const Gpu& gpu : machine.gpus) addresses.push_back(gpu.pci_address);
  return read_topology(allowed_cpus(), addresses);
}

std::vector<CpuBinding> bind_workers(NumaBinding binding, const Topology& topology,
                                     const std::vector<int>& homes, int workers, const std::string& origin) {
  const std::size_t count = std::max(homes.size(), static_cast<std::size_t>(workers));
  std::vector<Share> shares;
  std::map<int, std::size_t> workers_of_node;
  for (std::size_t i = 0; i < count; ++i) {
    const int node = homes[i % homes.size()];
    shares.push_back({.node = node, .index = workers_of_node[node]++});
  }
  shares.resize(static_cast<std::size_t>(workers));
  const Binder binder(topology, origin);
  std::vector<CpuBinding> bindings;
  for (Share& share : shares) {
    share.workers = workers_of_node.at(share.node);
    bindings.push_back(binder.bind(binding, share));
  }
  return bindings;
}

std::vector<int> spread_over_nodes(const Topology& topology, int workers) {
  const std::set<int> distinct = nodes_of(topology);
  const std::vector<int> nodes(distinct.begin(), distinct.end());
  std::vector<int> homes;
  const auto count = static_cast<std::size_t>(workers);
  for (std::size_t i = 0; i < count; ++i) homes.push_back(nodes[i * nodes.size() / count]);
  return homes;
}

std::vector<CpuBinding> decide_numa_binding(const LaunchInputs& inputs, const Settings& settings,
                                            const Environment& worker_environment, int workers,
                                            bool uses_gpus) {
  const auto binding = settings[key::numa_binding];
  if (!binding) return {};
  const std::string& origin = settings.origin(key::numa_binding);
  const Topology topology = inputs.topology(inputs.machine);
  if (topology.cpus.empty()) fail(origin, "the kernel does not report which CPUs acc may use");
  Environment environment = inputs.environment;
  environment.overlay(worker_environment);
  const std::vector<Gpu> gpus = uses_gpus ? visible_gpus(inputs.machine, environment) : std::vector<Gpu>{};
  const std::string mask = environment.get("CUDA_VISIBLE_DEVICES");
  if (uses_gpus && mask.find("MIG-") != std::string::npos) {
    fail(origin, fmt::format("the NUMA nodes of CUDA_VISIBLE_DEVICES='{}' are not known", mask),
         "name whole GPUs, or leave --numa-binding out");
  }
  std::vector<int> homes;
  for (const Gpu& gpu : gpus) homes.push_back(home_of(gpu, topology, origin));
  if (homes.empty()) homes = spread_over_nodes(topology, workers);
  return bind_workers(*binding, topology, homes, workers, origin);
}

}  // namespace acc::launcher
