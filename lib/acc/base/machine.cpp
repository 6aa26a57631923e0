// SPDX-License-Identifier: Apache-2.0
#include "acc/base/machine.hpp"

#include <sys/random.h>
#include <sys/sysinfo.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <set>

#include "acc/base/files.hpp"
#include "acc/base/text.hpp"
#include "acc/base/topology.hpp"

namespace acc {
namespace {

int count_cores(const CpuSet& cpus) {
  std::set<std::string> cores;
  for (const int cpu : cpus) {
    const std::string topology = "/sys/devices/system/cpu/cpu" + std::to_string(cpu) + "/topology/";
    const std::string siblings = first_line_of(topology + "thread_siblings_list");
    cores.insert(siblings.empty() ? "cpu" + std::to_string(cpu) : siblings);
  }
  return static_cast<int>(cores.size());
}

const Gpu* find_gpu(const std::vector<Gpu>& gpus, std::string_view entry) {
  if (const auto index = parse_integer(entry)) {
    const auto found = std::ranges::find(gpus, *index, &Gpu::index);
    return found == gpus.end() ? nullptr : &*found;
  }
  if (!entry.starts_with("GPU-")) return nullptr;
  const auto found = std::ranges::find_if(gpus, [&](const Gpu& gpu) { return gpu.uuid.starts_with(entry); });
  return found == gpus.end() ? nullptr : &*found;
}

}  // namespace

std::string host_name() {
  std::array<char, 256> name = {};
  return ::gethostname(name.data(), name.size() - 1) == 0 && name[0] != 0 ? name.data() : "localhost";
}

int allowed_cores() {
  const int cores = std::max(1, count_cores(allowed_cpus()));
  const auto quota = cgroup_cpu_quota();
  return quota ? std::clamp(static_cast<int>(*quota), 1, cores) : cores;
}

std::uint32_t random_number() {
  std::uint32_t number = 0;
  while (::getrandom(&number, sizeof number, 0) != sizeof number) {
  }
  return number;
}

Machine probe_machine(bool with_gpus) {
  Machine machine;
  machine.hostname = host_name();
  machine.online_cpus = std::max(1, static_cast<int>(::sysconf(_SC_NPROCESSORS_ONLN)));
  machine.allowed_cpus = std::max(1, static_cast<int>(allowed_cpus().size()));
  struct sysinfo info = {};
  if (::sysinfo(&info) == 0) machine.memory_bytes = std::uint64_t{info.totalram} * info.mem_unit;
  if (with_gpus) {
    GpuInventory inventory = query_nvml();
    machine.gpus = std::move(inventory.gpus);
    machine.driver_version = std::move(inventory.driver_version);
  }
  return machine;
}

std::vector<Gpu> visible_gpus(const Machine& machine, const Environment& environment) {
  const auto list = environment.find("CUDA_VISIBLE_DEVICES");
  if (!list) return machine.gpus;
  std::vector<Gpu> visible;
  for (const std::string& entry : split(*list, ',')) {
    const Gpu* gpu = find_gpu(machine.gpus, trim(entry));
    if (gpu == nullptr) break;
    visible.push_back(*gpu);
  }
  return visible;
}

}  // namespace acc
