// SPDX-License-Identifier: Apache-2.0
#include "acc/control/process_table.hpp"

#include <fcntl.h>
#include <time.h>
#include <unistd.h>

#include <array>
#include <charconv>
#include <utility>

#include "acc/base/files.hpp"
#include "acc/base/stat_line.hpp"
#include "acc/base/text.hpp"

namespace acc::launcher {
namespace {

namespace fs = std::filesystem;

// Indexes of the fields after the name, from the state, which is field 3 in proc(5).
constexpr std::size_t kState = 0;
constexpr std::size_t kParent = 1;
constexpr std::size_t kFirstTime = 11;
constexpr std::size_t kFirstTimeOfChildren = 13;
constexpr std::size_t kLastTime = 14;
constexpr std::size_t kThreads = 17;
constexpr std::size_t kStart = 19;
constexpr std::size_t kResident = 21;

std::chrono::milliseconds from_ticks(std::int64_t ticks) {
  static const std::int64_t per_second = ::sysconf(_SC_CLK_TCK);
  return std::chrono::milliseconds(ticks * 1000 / per_second);
}

// A small file of /proc is read whole by one read(2).
std::string read_small(const fs::path& file, std::size_t max_bytes) {
  const Descriptor fd(::open(file.c_str(), O_RDONLY | O_CLOEXEC));
  std::string text(max_bytes, '\0');
  const ssize_t size = fd ? ::read(fd.get(), text.data(), text.size()) : -1;
  text.resize(size > 0 ? static_cast<std::size_t>(size) : 0);
  return text;
}

std::optional<pid_t> to_pid(std::string_view name) {
  pid_t pid = 0;
  const auto [end, error] = std::from_chars(name.data(), name.data() + name.size(), pid);
  if (error != std::errc{} || end != name.data() + name.size()) return std::nullopt;
  return pid;
}

}  // namespace

std::optional<ProcessStat> parse_process_stat(std::string_view text) {
  const auto line = parse_stat_line(text);
  if (!line) return std::nullopt;
  const auto pid = to_pid(line->pid);
  const std::vector<std::string> words = split(line->fields, ' ');
  if (!pid || words.size() <= kResident || words[kState].size() != 1) return std::nullopt;
  const auto number = [&](std::size_t word) { return parse_integer(words[word]).value_or(0); };
  ProcessStat process{.pid = *pid,
                      .parent = static_cast<pid_t>(number(kParent)),
                      .state = words[kState].front(),
                      .name = std::string(line->name),
                      .threads = static_cast<int>(number(kThreads)),
                      .started = from_ticks(number(kStart))};
  std::int64_t ticks = 0;
  for (std::size_t word = kFirstTime; word < kFirstTimeOfChildren; ++word) ticks += number(word);
  std::int64_t ticks_of_children = 0;
  for (std::size_t word = kFirstTimeOfChildren; word <= kLastTime; ++word) ticks_of_children += number(word);
  process.cpu_time = from_ticks(ticks + ticks_of_children);
  process.cpu_time_of_children = from_ticks(ticks_of_children);
  process.resident_bytes =
      static_cast<std::uint64_t>(number(kResident)) * static_cast<std::uint64_t>(::sysconf(_SC_PAGESIZE));
  return process;
}

std::optional<ProcessStat> read_process(pid_t pid, const fs::path& proc) {
  return parse_process_stat(read_small(proc / std::to_string(pid) / "stat", 1024));
}

ProcessTable ProcessTable::read(const fs::path& proc) {
  ProcessTable table;
  std::error_code error;
  for (fs::directory_iterator entry(proc, error), end; !error && entry != end; entry.increment(error)) {
    const auto pid = to_pid(entry->path().filename().native());
    if (!pid) continue;
    if (auto process = read_process(*pid, proc)) table.add(std::move(*process));
  }
  return table;
}

void ProcessTable::add(ProcessStat process) {
  children_.emplace(process.parent, process.pid);
  processes_[process.pid] = std::move(process);
}

const ProcessStat* ProcessTable::find(pid_t pid) const& {
  const auto process = processes_.find(pid);
  return process == processes_.end() ? nullptr : &process->second;
}

std::vector<const ProcessStat*> ProcessTable::tree(pid_t root, std::set<pid_t>* counted) const& {
  std::vector<const ProcessStat*> processes;
  const auto add = [&](pid_t pid) {
    const ProcessStat* process = find(pid);
    if (process != nullptr && (counted == nullptr || counted->insert(pid).second))
      processes.push_back(process);
  };
  add(root);
  for (std::size_t i = 0; i < processes.size(); ++i) {
    const auto [first, last] = children_.equal_range(processes[i]->pid);
    for (auto child = first; child != last; ++child) add(child->second);
  }
  return processes;
}

std::chrono::nanoseconds exact_cpu_time(const ProcessStat& process) {
  clockid_t clock = {};
  timespec time = {};
  if (::clock_getcpuclockid(process.pid, &clock) != 0 || ::clock_gettime(clock, &time) != 0)
    return process.cpu_time;
  return std::chrono::seconds(time.tv_sec) + std::chrono::nanoseconds(time.tv_nsec) +
         process.cpu_time_of_children;
}

std::uint64_t memory_of(const ProcessStat& process, const fs::path& proc) {
  const std::string text = read_small(proc / std::to_string(process.pid) / "smaps_rollup", 4096);
  const std::size_t line = text.find("\nPss:");
  if (line == std::string::npos) return process.resident_bytes;
  const std::size_t end = text.find(" kB", line);
  const auto kib = parse_integer(std::string_view(text).substr(line + 5, end - line - 5));
  return kib ? static_cast<std::uint64_t>(*kib) << 10U : process.resident_bytes;
}

std::chrono::milliseconds time_since_boot() {
  timespec now = {};
  ::clock_gettime(CLOCK_BOOTTIME, &now);
  return std::chrono::milliseconds(std::int64_t{now.tv_sec} * 1000 + now.tv_nsec / 1'000'000);
}

}  // namespace acc::launcher
