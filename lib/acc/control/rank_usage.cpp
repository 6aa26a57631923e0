// SPDX-License-Identifier: Apache-2.0
#include "acc/control/rank_usage.hpp"

#include <algorithm>

namespace acc::launcher {
namespace {

std::chrono::milliseconds cpu_time_of(const ProcessTable& table, pid_t root) {
  std::chrono::milliseconds sum = {};
  for (const ProcessStat* process : table.tree(root)) sum += process->cpu_time;
  return sum;
}

}  // namespace

std::string state_in_words(char state) {
  switch (state) {
    case 'R':
      return "running";
    case 'S':
    case 'I':
      return "sleeping";
    case 'D':
      return "waiting for a device";
    case 'T':
      return "stopped";
    case 't':
      return "traced";
    case 'Z':
    case 'X':
      return "ended";
    default:
      return "unknown";
  }
}

std::optional<double> cpu_percent(pid_t root, const ProcessTable& before, const ProcessTable& now,
                                  std::chrono::milliseconds interval) {
  if (before.find(root) == nullptr || interval.count() <= 0) return std::nullopt;
  const auto used = cpu_time_of(now, root) - cpu_time_of(before, root);
  return std::max(0.0, 100.0 * static_cast<double>(used.count()) / static_cast<double>(interval.count()));
}

RankUsage rank_usage(const RankView& rank, const ProcessTable& before, const ProcessTable& now,
                     std::chrono::milliseconds interval, const std::vector<GpuProcess>& gpu_processes) {
  RankUsage usage;
  const auto tree = now.tree(rank.pid);
  if (!rank.ended.empty() || tree.empty()) {
    usage.state = rank.ended.empty() ? "ended" : rank.ended;
    return usage;
  }
  usage.state = state_in_words(tree.front()->state);
  // The rank waits for the child that does its work: what the child does is what the rank does.
  const bool any_runs = std::ranges::any_of(tree, [](const auto* process) { return process->state == 'R'; });
  if (any_runs && tree.front()->state == 'S') usage.state = "running";
  usage.uptime = time_since_boot() - tree.front()->started;
  usage.cpu_percent = cpu_percent(rank.pid, before, now, interval);
  for (const ProcessStat* process : tree) {
    ++usage.processes;
    usage.threads += process->threads;
    usage.memory_bytes += memory_of(*process);
    for (const GpuProcess& on_gpu : gpu_processes) {
      if (on_gpu.pid != process->pid) continue;
      auto known = std::ranges::find(usage.gpus, on_gpu.gpu, &RankGpu::index);
      if (known == usage.gpus.end())
        known = usage.gpus.insert(known, {.index = on_gpu.gpu, .use = on_gpu.gpu_use});
      known->memory_bytes += on_gpu.memory_bytes;
    }
  }
  return usage;
}

}  // namespace acc::launcher
