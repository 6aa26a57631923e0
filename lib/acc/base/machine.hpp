// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "acc/base/environment.hpp"
#include "acc/base/nvml.hpp"

namespace acc {

/// The resources of this machine, as data.
struct Machine {
  std::string hostname = "localhost";
  /// Online CPUs, whatever the affinity.
  int online_cpus = 1;
  /// CPUs that this process may run on (affinity mask): what `cpu` and `auto` count, as in torchrun 2.15.
  int allowed_cpus = 1;
  /// All GPUs of the machine in NVML's order, whatever CUDA_VISIBLE_DEVICES says.
  std::vector<Gpu> gpus = {};
  /// The version of the NVIDIA driver; empty if there is none.
  std::string driver_version = {};
  std::uint64_t memory_bytes = 0;

  bool operator==(const Machine&) const = default;
};

/// The host name of the kernel; localhost if it has none.
std::string host_name();

/// Physical cores among the CPUs on which this process may run (hyper-threads counted once), lowered by a
/// cgroup's CPU quota; at least 1. Reads a file for each CPU.
int allowed_cores();

/// From getrandom(2), or /dev/urandom where a system refuses that: not predictable.
std::uint32_t random_number();

/// Queries the kernel, and NVML if `with_gpus`. Never loads CUDA or LibTorch; takes well under a millisecond
/// without an NVIDIA driver. Never throws: what cannot be read keeps its default.
Machine probe_machine(bool with_gpus);

/// The entries of CUDA_VISIBLE_DEVICES that count, as torch.cuda reads it: numbers, or names of one kind
/// (GPU-, MIG-). The list ends at the first entry of another kind; one that names a device twice shows none.
std::vector<std::string> devices_of_mask(std::string_view mask);

/// The GPUs that a worker would see under `environment`: CUDA_VISIBLE_DEVICES has indices or UUIDs (also
/// shortened ones), and the list ends at the first entry that names none. A MIG device is a Gpu without
/// an index, of which only the name is known: NVML lists whole GPUs.
std::vector<Gpu> visible_gpus(const Machine& machine, const Environment& environment);

}  // namespace acc
