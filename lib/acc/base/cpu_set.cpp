// SPDX-License-Identifier: Apache-2.0
#include "acc/base/cpu_set.hpp"

#include <sched.h>

#include <algorithm>
#include <cstddef>

#include "acc/base/text.hpp"

namespace acc {
namespace {

// More CPUs than any Linux can have; a smaller set fails on machines with more than 1024.
constexpr int kMostCpus = 8192;

}  // namespace

std::optional<CpuSet> parse_cpu_list(std::string_view text) {
  CpuSet cpus;
  if (trim(text).empty()) return cpus;
  for (const std::string& range : split(trim(text), ',')) {
    const std::vector<std::string> ends = split(range, '-');
    const auto first = parse_integer(ends.front());
    const auto last = parse_integer(ends.back());
    if (ends.size() > 2 || !first || !last || *first < 0 || *last < *first || *last >= kMostCpus) {
      return std::nullopt;
    }
    for (auto cpu = *first; cpu <= *last; ++cpu) cpus.push_back(static_cast<int>(cpu));
  }
  std::ranges::sort(cpus);
  cpus.erase(std::unique(cpus.begin(), cpus.end()), cpus.end());
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
  cpu_set_t* set = CPU_ALLOC(kMostCpus);
  const std::size_t size = CPU_ALLOC_SIZE(kMostCpus);
  CpuSet cpus;
  if (set != nullptr && ::sched_getaffinity(0, size, set) == 0) {
    for (int cpu = 0; cpu < kMostCpus; ++cpu) {
      if (CPU_ISSET_S(cpu, size, set)) cpus.push_back(cpu);
    }
  }
  CPU_FREE(set);
  return cpus;
}

}  // namespace acc
