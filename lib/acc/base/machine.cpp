// SPDX-License-Identifier: Apache-2.0
#include "acc/base/machine.hpp"

#include <sys/random.h>
#include <sys/sysinfo.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <optional>
#include <random>
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

constexpr std::string_view kMigPrefix = "MIG-";

std::optional<Gpu> find_gpu(const std::vector<Gpu>& gpus, std::string_view device) {
  if (device.starts_with(kMigPrefix)) return Gpu{.index = -1, .uuid = std::string(device)};
  const auto index = parse_integer(device);
  const auto found = std::ranges::find_if(
      gpus, [&](const Gpu& gpu) { return index ? gpu.index == *index : gpu.uuid.starts_with(device); });
  return found == gpus.end() ? std::nullopt : std::optional(*found);
}

// The number at the beginning, as in strtoul: torch.cuda takes `1x` for 1.
std::string_view leading_number(std::string_view entry) {
  return entry.substr(0, std::min(entry.find_first_not_of("0123456789"), entry.size()));
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
  for (;;) {
    if (::getrandom(&number, sizeof number, 0) == sizeof number) return number;
    // Older kernels and some sandboxes do not have the call.
    if (errno != EINTR) return std::random_device("/dev/urandom")();
  }
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

std::vector<std::string> devices_of_mask(std::string_view mask) {
  const std::string_view first = trim(mask);
  std::string_view prefix;
  for (const std::string_view kind : {std::string_view("GPU-"), kMigPrefix}) {
    if (first.starts_with(kind)) prefix = kind;
  }
  std::vector<std::string> devices;
  for (const std::string& entry : split(mask, ',')) {
    const std::string_view device = prefix.empty() ? leading_number(trim(entry)) : trim(entry);
    if (device.empty() || !device.starts_with(prefix)) break;
    if (contains(devices, device)) return {};
    devices.emplace_back(device);
  }
  return devices;
}

std::vector<Gpu> visible_gpus(const Machine& machine, const Environment& environment) {
  const auto mask = environment.find("CUDA_VISIBLE_DEVICES");
  if (!mask || machine.gpus.empty()) return machine.gpus;
  std::vector<Gpu> visible;
  for (const std::string& device : devices_of_mask(*mask)) {
    const std::optional<Gpu> gpu = find_gpu(machine.gpus, device);
    if (!gpu) break;
    visible.push_back(*gpu);
  }
  return visible;
}

}  // namespace acc
