// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>

#include "acc/launch/exit_status.hpp"

namespace acc::launcher {

/// What a memory limit, or the memory of a machine, leaves.
struct MemoryLeft {
  std::uint64_t bytes = 0;
  std::uint64_t limit = 0;

  bool operator==(const MemoryLeft&) const = default;
};

/// What our cgroup and those above it leave at least, in bytes, by cgroup v2 or v1; what the kernel would
/// drop of the files that it has read counts as left. Absent: there is no limit.
std::optional<MemoryLeft> cgroup_memory_left(const CgroupPaths& paths = {});

/// The same of the machine. Absent: the kernel does not say.
std::optional<MemoryLeft> machine_memory_left(const std::filesystem::path& meminfo = "/proc/meminfo");

}  // namespace acc::launcher
