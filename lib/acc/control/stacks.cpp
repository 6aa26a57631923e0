// SPDX-License-Identifier: Apache-2.0
#include "acc/control/stacks.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <future>
#include <map>
#include <thread>

#include "acc/base/descriptor.hpp"
#include "acc/base/text.hpp"
#include "acc/control/job_table.hpp"
#include "acc/control/native_stacks.hpp"
#include "acc/control/process_table.hpp"
#include "acc/control/rank_stand.hpp"
#include "acc/control/thread_wait.hpp"

namespace acc {
namespace {

namespace fs = std::filesystem;

// Of a rank; a data loader's workers all look alike.
constexpr std::size_t kMostProcesses = 8;
constexpr unsigned kMostAtOnce = 8;
constexpr std::string_view kMostFrames = "64";
// The kernel counts CPU time in steps of 10 ms.
constexpr auto kLook = std::chrono::milliseconds(200);

std::string program_of(pid_t pid) {
  std::error_code ignored;
  return fs::read_symlink(fs::path("/proc") / std::to_string(pid) / "exe", ignored).filename();
}

std::string indented(std::string_view text, std::string_view indent) {
  std::string result;
  for (const std::string& line : split(trim(text), '\n')) result += fmt::format("{}{}\n", indent, line);
  return result;
}

std::string thread_lines(pid_t pid) {
  std::map<std::string, std::vector<std::string>> places;
  for (const ThreadWait& thread : threads_of(pid)) places[to_string(thread)].push_back(thread.name);
  std::string text;
  for (auto& [place, names] : places) {
    const std::size_t count = names.size();
    std::ranges::sort(names);
    names.erase(std::ranges::unique(names).begin(), names.end());
    if (names.size() > 4) {
      names.resize(4);
      names.emplace_back("...");
    }
    text +=
        fmt::format("  {} {} {}: {}\n", count, count == 1 ? "thread" : "threads", place, join(names, ", "));
  }
  return text;
}

std::string python_stacks(pid_t pid, const StackOptions& options) {
  const auto dump =
      run_tool({"py-spy", "dump", "--pid", std::to_string(pid)}, options.environment, options.limits);
  if (!dump) return "  Python stacks: not shown, py-spy is not on PATH (pip install py-spy)\n";
  if (dump->timed_out) return "  Python stacks: py-spy took too long\n";
  return "  Python stacks:\n" + indented(dump->text, "    ");
}

std::string native_stacks(pid_t pid, const StackOptions& options) {
  const std::vector<std::string> command = {"gdb",
                                            "-nx",
                                            "-batch",
                                            "-iex",
                                            "set debuginfod enabled off",
                                            "-iex",
                                            "set auto-load off",
                                            "-ex",
                                            fmt::format("thread apply all bt {}", kMostFrames),
                                            "-p",
                                            std::to_string(pid)};
  const auto dump = run_tool(command, options.environment, options.limits);
  if (!dump) return "  native stacks: not shown, gdb is not on PATH\n";
  const std::string stacks = shorten_native_stacks(dump->text);
  const std::string cut = dump->timed_out ? " (gdb took too long, this is what it had)" : "";
  if (!stacks.empty()) return "  native stacks:" + cut + "\n" + indented(stacks, "    ");
  return fmt::format("  native stacks: {}\n",
                     dump->timed_out ? "gdb took too long" : native_stacks_problem(dump->text));
}

std::string process_text(const ProcessStat& process, bool first, const StackOptions& options) {
  std::string text;
  if (!first) text += fmt::format("  process {} ({}):\n", process.pid, process.name);
  text += thread_lines(process.pid);
  if (process.state == 'Z') return text;
  if (program_of(process.pid).starts_with("python")) text += python_stacks(process.pid, options);
  return text + native_stacks(process.pid, options);
}

// A file that is older than the rank is another job's.
std::string flight_record_text(const RankView& rank, const ProcessStat& process,
                               const StackOptions& options) {
  const fs::path record = find_flight_record(rank.rank, options.environment);
  if (record.empty()) return {};
  std::error_code ignored;
  const auto age = std::chrono::duration_cast<std::chrono::milliseconds>(
      fs::file_time_type::clock::now() - fs::last_write_time(record, ignored));
  if (age > time_since_boot() - process.started) return {};
  return fmt::format("  NCCL flight recorder: {}, written {} ago\n", record.string(), short_duration(age));
}

std::string rank_text(const RankView& rank, const RankStand& stand, const ProcessTable& table,
                      const StackOptions& options) {
  std::string text = fmt::format("\nrank {} (local rank {}, pid {}): {}\n", rank.rank, rank.local_rank,
                                 rank.pid, to_string(stand));
  const auto tree = table.tree(rank.pid);
  for (std::size_t i = 0; i < tree.size() && i < kMostProcesses; ++i)
    text += process_text(*tree[i], i == 0, options);
  if (tree.size() > kMostProcesses)
    text += fmt::format("  and {} more processes\n", tree.size() - kMostProcesses);
  return tree.empty() ? text : text + flight_record_text(rank, *tree.front(), options);
}

}  // namespace

void ask_for_flight_record(int rank, const Environment& environment) {
  const auto beginning = environment.find("TORCH_NCCL_DEBUG_INFO_PIPE_FILE");
  if (!beginning) return;
  const std::string pipe = *beginning + std::to_string(rank) + ".pipe";
  const Descriptor to(::open(pipe.c_str(), O_WRONLY | O_NONBLOCK | O_CLOEXEC));
  struct stat info = {};
  if (!to || ::fstat(to.get(), &info) != 0 || !S_ISFIFO(info.st_mode)) return;
  // Any byte does; without it the report is only shorter.
  [[maybe_unused]] const ssize_t ignored = ::write(to.get(), "1", 1);
}

fs::path find_flight_record(int rank, const Environment& environment) {
  std::vector<std::string> beginnings;
  for (const char* name : {"TORCH_FR_DUMP_TEMP_FILE", "TORCH_NCCL_DEBUG_INFO_TEMP_FILE"}) {
    if (const auto value = environment.find(name)) beginnings.push_back(*value);
  }
  beginnings.emplace_back("/tmp/nccl_trace_rank_");
  beginnings.push_back(environment.get("XDG_CACHE_HOME", environment.get("HOME") + "/.cache") +
                       "/torch/comm_lib_trace_rank_");
  fs::path newest;
  fs::file_time_type written = fs::file_time_type::min();
  for (const std::string& beginning : beginnings) {
    std::error_code error;
    const fs::path file = beginning + std::to_string(rank);
    const auto time = fs::last_write_time(file, error);
    if (error || time <= written) continue;
    newest = file;
    written = time;
  }
  return newest;
}

void write_stacks(const JobView& job, const StackOptions& given,
                  const std::function<void(std::string_view)>& write) {
  StackOptions options = given;
  options.environment.erase("DEBUGINFOD_URLS");
  for (const RankView& rank : job.ranks) ask_for_flight_record(rank.rank, options.environment);
  const ProcessTable before = ProcessTable::read();
  std::this_thread::sleep_for(kLook);
  const ProcessTable table = ProcessTable::read();
  std::vector<RankStand> stands;
  std::string head;
  for (const RankView& rank : job.ranks) {
    stands.push_back(stand_of(rank, before, table, kLook));
    head += fmt::format("rank {}: {}\n", rank.rank, to_string(stands.back()));
  }
  const std::string stragglers = name_stragglers(stands);
  write(head + (stragglers.empty() ? "" : stragglers + "\n"));

  // A debugger takes a second or more for a process with LibTorch in it.
  const std::size_t at_once = std::clamp(std::thread::hardware_concurrency(), 1U, kMostAtOnce);
  std::vector<std::future<std::string>> texts;
  std::size_t shown = 0;
  const auto show_next = [&] { write(texts[shown++].get()); };
  for (std::size_t i = 0; i < job.ranks.size(); ++i) {
    if (i >= at_once) show_next();
    texts.push_back(std::async(std::launch::async,
                               [&, i] { return rank_text(job.ranks[i], stands[i], table, options); }));
  }
  while (shown < texts.size()) show_next();
}

}  // namespace acc
