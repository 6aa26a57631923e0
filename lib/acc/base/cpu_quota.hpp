// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <filesystem>
#include <optional>

namespace acc {

/// How many CPUs' worth of time the control groups of this process allow, the tightest of them and of all
/// groups around them: cgroup v2's cpu.max and v1's quota. Absent: no limit. Never throws.
std::optional<double> cgroup_cpu_quota(const std::filesystem::path& groups = "/proc/self/cgroup",
                                       const std::filesystem::path& root = "/sys/fs/cgroup");

}  // namespace acc
