// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace acc {

/// CPUs by the kernel's numbers, in ascending order, none twice.
using CpuSet = std::vector<int>;

/// What the kernel writes for a set of CPUs, as in `0-3,8`. Absent for anything else.
std::optional<CpuSet> parse_cpu_list(std::string_view text);

/// `0-3,8`; empty for an empty set.
std::string format_cpu_list(const CpuSet& cpus);

/// The CPUs that this process may run on: its affinity mask, which no cpuset exceeds.
CpuSet allowed_cpus();

}  // namespace acc
