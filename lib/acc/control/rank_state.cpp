// SPDX-License-Identifier: Apache-2.0
#include "acc/control/rank_state.hpp"

#include <fmt/format.h>
#include <sys/syscall.h>

#include <algorithm>
#include <iterator>
#include <map>
#include <thread>

#include "acc/base/files.hpp"
#include "acc/base/text.hpp"
#include "acc/control/job_table.hpp"
#include "acc/control/process_table.hpp"

namespace acc::launcher {
namespace {

std::chrono::milliseconds cpu_time_of(const ProcessTable& table, pid_t root) {
  std::chrono::milliseconds sum = {};
  for (const ProcessStat* process : table.tree(root)) sum += process->cpu_time;
  return sum;
}

}  // namespace

ProcessSample sample_processes() {
  ProcessSample sample = {.previous = ProcessTable::read()};
  const auto start = std::chrono::steady_clock::now();
  std::this_thread::sleep_for(kSampleInterval);
  sample.current = ProcessTable::read();
  sample.interval =
      std::chrono::duration_cast<std::chrono::milliseconds>(std::chrono::steady_clock::now() - start);
  return sample;
}

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

std::optional<double> cpu_percent(pid_t root, const ProcessTable& previous, const ProcessTable& current,
                                  std::chrono::milliseconds interval) {
  if (previous.find(root) == nullptr || interval.count() <= 0) return std::nullopt;
  const auto used = cpu_time_of(current, root) - cpu_time_of(previous, root);
  return std::max(0.0, 100.0 * static_cast<double>(used.count()) / static_cast<double>(interval.count()));
}

RankUsage rank_usage(const RankView& rank, const ProcessTable& previous, const ProcessTable& current,
                     std::chrono::milliseconds interval, const std::vector<GpuProcess>& gpu_processes,
                     CountedProcesses& counted) {
  RankUsage usage;
  const auto tree =
      rank.ended.empty() ? current.tree(rank.pid, &counted.of_job) : std::vector<const ProcessStat*>();
  if (tree.empty()) {
    usage.state = rank.ended.empty() ? "ended" : rank.ended;
    return usage;
  }
  usage.state = state_in_words(tree.front()->state);
  // A rank that waits for a running child counts as running.
  const bool any_runs = std::ranges::any_of(tree, [](const auto* process) { return process->state == 'R'; });
  if (any_runs && tree.front()->state == 'S') usage.state = "running";
  usage.uptime = time_since_boot() - tree.front()->started;
  usage.cpu_percent = cpu_percent(rank.pid, previous, current, interval);
  for (const ProcessStat* process : tree) {
    ++usage.processes;
    usage.threads += process->threads;
    usage.cpu_time += process->cpu_time;
    const auto [memory, is_new] = counted.memory_bytes.try_emplace(process->pid);
    if (is_new) memory->second = memory_of(*process);
    usage.memory_bytes += memory->second;
    for (const GpuProcess& gpu_process : gpu_processes) {
      if (gpu_process.pid != process->pid) continue;
      auto gpu = std::ranges::find(usage.gpus, gpu_process.gpu, &RankGpu::index);
      if (gpu == usage.gpus.end())
        gpu = usage.gpus.insert(
            gpu, {.index = gpu_process.gpu, .use = gpu_process.gpu_use, .watts = gpu_process.gpu_watts});
      gpu->memory_bytes += gpu_process.memory_bytes;
    }
  }
  return usage;
}

namespace {

namespace fs = std::filesystem;

ThreadWait read_thread(const fs::path& folder, const ProcessStat& stat) {
  ThreadWait thread{.id = stat.pid, .name = stat.name, .state = stat.state};
  thread.kernel = first_line_of(folder / "wchan");
  if (thread.kernel == "0") thread.kernel.clear();
  // `202 0x... ...`, or `running`, or `-1 ...` outside a call.
  const std::string line = first_line_of(folder / "syscall");
  const auto number = parse_integer(std::string_view(line).substr(0, line.find(' ')));
  if (number && *number >= 0) thread.call = name_of_call(static_cast<long>(*number));
  return thread;
}

}  // namespace

std::vector<ThreadWait> threads_of(pid_t pid, const fs::path& proc) {
  std::vector<ThreadWait> threads;
  const fs::path tasks = proc / std::to_string(pid) / "task";
  std::error_code error;
  for (fs::directory_iterator entry(tasks, error), end; !error && entry != end; entry.increment(error)) {
    const auto id = parse_integer(entry->path().filename().native());
    const auto stat = id ? read_process(static_cast<pid_t>(*id), tasks) : std::nullopt;
    if (stat) threads.push_back(read_thread(entry->path(), *stat));
  }
  std::ranges::sort(threads, {},
                    [&](const ThreadWait& thread) { return std::pair(thread.id != pid, thread.id); });
  return threads;
}

std::string to_string(const ThreadWait& thread) {
  std::string text = state_in_words(thread.state);
  if (thread.state != 'S' && thread.state != 'D') return text;
  if (!thread.call.empty()) text += " in " + thread.call;
  if (!thread.kernel.empty())
    text += thread.call.empty() ? " in " + thread.kernel : " (" + thread.kernel + ")";
  return text;
}

std::string name_of_call(long number) {
  static const std::map<long, std::string> names = {
#define ACC_CALL(name) {SYS_##name, #name}
      ACC_CALL(read),        ACC_CALL(write),           ACC_CALL(readv),           ACC_CALL(writev),
      ACC_CALL(pread64),     ACC_CALL(pwrite64),        ACC_CALL(fsync),           ACC_CALL(openat),
      ACC_CALL(ioctl),       ACC_CALL(futex),           ACC_CALL(ppoll),           ACC_CALL(pselect6),
      ACC_CALL(epoll_pwait), ACC_CALL(nanosleep),       ACC_CALL(clock_nanosleep), ACC_CALL(connect),
      ACC_CALL(accept),      ACC_CALL(accept4),         ACC_CALL(recvfrom),        ACC_CALL(recvmsg),
      ACC_CALL(sendto),      ACC_CALL(sendmsg),         ACC_CALL(wait4),           ACC_CALL(waitid),
      ACC_CALL(flock),       ACC_CALL(rt_sigtimedwait), ACC_CALL(rt_sigsuspend),
#ifdef SYS_poll  // of older machines
      ACC_CALL(poll),        ACC_CALL(select),          ACC_CALL(epoll_wait),      ACC_CALL(pause),
      ACC_CALL(open),
#endif
#undef ACC_CALL
  };
  const auto name = names.find(number);
  return name == names.end() ? "system call " + std::to_string(number) : name->second;
}

namespace {

constexpr double kBusyPercent = 20;
constexpr double kMuchLess = 5;

std::string differ(const std::vector<int>& ranks, const std::string& activity, std::size_t other_ranks,
                   const std::string& other_activity) {
  return fmt::format("{} {}: {}, while the other {} {} {}", name_ranks(ranks),
                     ranks.size() == 1 ? "differs" : "differ", activity, other_ranks,
                     other_ranks == 1 ? "is" : "are", other_activity);
}

Stragglers by_activity(const std::vector<RankState>& ranks) {
  std::map<std::string, std::vector<int>> groups;
  for (const RankState& rank : ranks) groups[rank.activity].push_back(rank.rank);
  const auto majority =
      std::ranges::max_element(groups, {}, [](const auto& group) { return group.second.size(); });
  if (groups.size() < 2 || majority->second.size() * 2 <= ranks.size()) return {};
  Stragglers stragglers;
  for (const auto& [activity, group] : groups) {
    if (activity == majority->first) continue;
    if (!stragglers.text.empty()) stragglers.text += "\n";
    stragglers.text += differ(group, activity, majority->second.size(), majority->first);
    stragglers.ranks.insert(stragglers.ranks.end(), group.begin(), group.end());
  }
  return stragglers;
}

// The median CPU use; absent if that of a rank is not known.
std::optional<double> median_cpu(const std::vector<RankState>& ranks) {
  std::vector<double> percents;
  for (const RankState& rank : ranks) {
    if (rank.cpu_percent) percents.push_back(*rank.cpu_percent);
  }
  if (ranks.empty() || percents.size() != ranks.size()) return std::nullopt;
  std::ranges::sort(percents);
  return percents[percents.size() / 2];
}

Stragglers by_cpu(const std::vector<RankState>& ranks, double median) {
  std::vector<int> stragglers;
  for (const RankState& rank : ranks) {
    if (*rank.cpu_percent * kMuchLess <= median) stragglers.push_back(rank.rank);
  }
  if (stragglers.empty() || stragglers.size() * 2 >= ranks.size()) return {};
  return {.ranks = stragglers,
          .text = differ(stragglers, fmt::format("at most {:.0f}% CPU", median / kMuchLess),
                         ranks.size() - stragglers.size(), fmt::format("near {:.0f}%", median))};
}

}  // namespace

RankState state_of(const RankView& rank, const ProcessTable& previous, const ProcessTable& current,
                   std::chrono::milliseconds interval) {
  RankState state{.rank = rank.rank, .activity = rank.ended.empty() ? "ended" : rank.ended};
  const auto tree = current.tree(rank.own_pid());
  if (!rank.ended.empty() || tree.empty()) return state;
  for (const ProcessStat* process : tree) state.threads += process->threads;
  state.processes = static_cast<int>(tree.size());
  state.cpu_percent = cpu_percent(rank.own_pid(), previous, current, interval);
  const std::vector<ThreadWait> threads = threads_of(rank.own_pid());
  if (!threads.empty()) state.activity = to_string(threads.front());
  return state;
}

std::string to_string(const RankState& state) {
  return state.activity + (state.cpu_percent ? fmt::format(", {:.0f}% CPU", *state.cpu_percent) : "");
}

Stragglers find_stragglers(const std::vector<RankState>& ranks) {
  std::vector<RankState> running = ranks;
  std::erase_if(running, [](const RankState& rank) { return rank.processes == 0; });
  const std::optional<double> median = median_cpu(running);
  // What busy ranks do changes all the time.
  if (median && *median >= kBusyPercent) return by_cpu(running, *median);
  return by_activity(running);
}

Stragglers find_stragglers(const std::map<int, RankStanding>& ranks,
                           const std::map<int, std::string>& ended) {
  if (ranks.empty()) return {};
  std::map<RankStanding, std::vector<int>> groups;
  for (const auto& [rank, standing] : ranks) groups[standing].push_back(rank);
  std::map<std::string, std::vector<int>> ends;
  for (const auto& [rank, status] : ended) ends[status].push_back(rank);

  Stragglers stragglers;
  std::vector<std::string> parts;
  for (const auto& [status, group] : ends) {
    parts.push_back(
        fmt::format("{} {} ended with {}", name_ranks(group), group.size() == 1 ? "has" : "have", status));
  }
  // Who did not come to where the others wait is first, and then the fewest.
  std::vector<std::pair<RankStanding, std::vector<int>>> order(groups.begin(), groups.end());
  std::ranges::stable_sort(
      order, {}, [](const auto& group) { return std::pair(group.first.waits, group.second.size()); });
  const auto& [last, last_ranks] = order.back();
  for (const auto& [standing, group] : order) {
    const bool is_single = group.size() == 1;
    parts.push_back(fmt::format("{} {} {}", name_ranks(group),
                                standing.waits ? (is_single ? "waits" : "wait") : (is_single ? "is" : "are"),
                                standing.position));
    const bool is_missing = !standing.waits && last.waits;
    if (is_missing || group.size() < last_ranks.size())
      stragglers.ranks.insert(stragglers.ranks.end(), group.begin(), group.end());
  }
  stragglers.text = join(parts, "; ");
  return stragglers;
}

RankStanding standing_of(const ProgressView& progress) {
  if (!progress.collective.empty()) return {.waits = true, .position = "in " + progress.collective};
  // In backward a rank averages gradients with the others.
  const bool waits = progress.section == name_of(Section::backward);
  return {.waits = waits, .position = fmt::format("in {} after step {}", progress.section, progress.steps)};
}

std::string to_string(const ProgressView& progress) {
  const bool in_collective = !progress.collective.empty();
  const auto since = in_collective ? progress.in_collective : progress.in_section;
  return fmt::format("in {} for {}, after step {}", in_collective ? progress.collective : progress.section,
                     short_duration(std::chrono::duration_cast<std::chrono::milliseconds>(since)),
                     progress.steps);
}

}  // namespace acc::launcher
