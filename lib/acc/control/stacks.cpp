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
#include <utility>
#include <vector>

#include "acc/base/files.hpp"
#include "acc/base/printable.hpp"
#include "acc/base/text.hpp"
#include "acc/control/flight_record.hpp"
#include "acc/control/job_table.hpp"
#include "acc/control/process_table.hpp"
#include "acc/control/python_position.hpp"
#include "acc/control/rank_state.hpp"

namespace acc::launcher {
namespace {

struct Block {
  std::vector<int> threads = {};
  std::string frames = {};
};

// `#3  0x00007f in foo (a=1) from /lib/libc.so.6` becomes `#3  foo from libc.so.6`.
std::string shorten_frame(std::string_view line) {
  const std::size_t blank = line.find(' ');
  const std::string number(line.substr(0, blank));
  std::string_view frame = trim(line.substr(std::min(blank, line.size())));
  if (frame.starts_with("0x")) {
    const std::size_t address_end = frame.find(" in ");
    if (address_end != std::string_view::npos) frame.remove_prefix(address_end + 4);
  }
  const std::size_t arguments = frame.find(" (");
  std::string text(frame.substr(0, arguments));
  const std::size_t library = frame.rfind(" from ");
  const std::size_t source = frame.rfind(" at ");
  if (source != std::string_view::npos) {
    text += frame.substr(source);
  } else if (library != std::string_view::npos) {
    const std::string_view file = frame.substr(library + 6);
    text += " from " + std::string(file.substr(file.rfind('/') + 1));
  }
  return fmt::format("  {:<4}{}\n", number, text);
}

// `Thread 2 (Thread 0x7f (LWP 12) "name"):`
int thread_of(std::string_view line) {
  const std::string_view rest = line.substr(7);
  return static_cast<int>(parse_integer(rest.substr(0, rest.find(' '))).value_or(0));
}

std::string name_threads(std::vector<int> threads) {
  std::ranges::sort(threads);
  return (threads.size() == 1 ? "Thread " : "Threads ") + number_ranges(threads);
}

}  // namespace

std::string shorten_native_stacks(std::string_view gdb_output) {
  std::vector<Block> blocks;
  bool in_python = false;
  for (const std::string& line : split(gdb_output, '\n')) {
    if (line.starts_with("Thread ")) {
      blocks.push_back({{thread_of(line)}, {}});
      in_python = false;
    } else if (line.starts_with('#') && !in_python) {
      if (blocks.empty()) blocks.push_back({{1}, {}});
      // The Python stack shows the frames below the interpreter's loop better.
      in_python = line.find("_PyEval_EvalFrameDefault") != std::string::npos;
      blocks.back().frames += in_python ? "  ... called by Python code\n" : shorten_frame(line);
    }
  }
  std::vector<Block> stacks;
  for (Block& block : blocks) {
    if (block.frames.empty()) continue;
    const auto stack = std::ranges::find(stacks, block.frames, &Block::frames);
    if (stack == stacks.end()) {
      stacks.push_back(std::move(block));
    } else {
      stack->threads.push_back(block.threads.front());
    }
  }
  // The main thread, which mostly does the program's work, comes first.
  std::ranges::sort(stacks, {}, [](const Block& block) { return *std::ranges::min_element(block.threads); });
  std::string text;
  for (const Block& block : stacks) text += name_threads(block.threads) + ":\n" + block.frames;
  return text;
}

std::string native_stacks_problem(std::string_view gdb_output) {
  std::string last;
  for (const std::string& line : split(gdb_output, '\n')) {
    if (line.starts_with("ptrace:") || line.find("Could not attach") != std::string::npos) return line;
    if (!trim(line).empty()) last = line;
  }
  return last.empty() ? "gdb printed nothing" : last;
}

namespace {

namespace fs = std::filesystem;
using TimePoint = std::chrono::steady_clock::time_point;

// Processes shown of a rank; the workers of a data loader all snapshot alike.
constexpr std::size_t kMaxProcesses = 8;
constexpr unsigned kMaxParallel = 8;
constexpr std::string_view kMaxFrames = "64";
// A worker that cannot run Python, since its main thread does not let it, is not waited for longer.
constexpr auto kRecordTime = std::chrono::seconds(2);

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
  std::map<std::string, std::vector<std::string>> states;
  for (const ThreadWait& thread : threads_of(pid))
    states[to_string(thread)].push_back(printable(thread.name));
  std::string text;
  for (auto& [state, names] : states) {
    const std::size_t count = names.size();
    std::ranges::sort(names);
    names.erase(std::ranges::unique(names).begin(), names.end());
    if (names.size() > 4) {
      names.resize(4);
      names.emplace_back("...");
    }
    text += fmt::format("  {} {}: {}\n", pluralize(count, "thread"), state, join(names, ", "));
  }
  return text;
}

std::optional<CommandOutput> python_stacks(pid_t pid, const StackOptions& options) {
  return run_command({"py-spy", "dump", "--pid", std::to_string(pid), "--full-filenames"},
                     options.environment, options.limits);
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
                                            fmt::format("thread apply all bt {}", kMaxFrames),
                                            "-p",
                                            std::to_string(pid)};
  const auto dump = run_command(command, options.environment, options.limits);
  if (!dump) return {};
  const std::string stacks = printable(shorten_native_stacks(dump->text));
  if (stacks.empty())
    return fmt::format("  {}\n",
                       dump->timed_out ? "gdb took too long" : printable(native_stacks_problem(dump->text)));
  return indented(stacks, "  ") + (dump->timed_out ? "  ... incomplete: gdb took too long\n" : "");
}

bool is_python(const ProcessStat& process) {
  return process.state != 'Z' && program_of(process.pid).starts_with("python");
}

// Ignores a file that is older than the rank: it is another job's.
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

/// The ranks of a job at one moment, those that differ from the others first.
struct Snapshot {
  struct Rank {
    const RankView* view = nullptr;
    RankState state = {};
    std::vector<const ProcessStat*> tree = {};
    /// As torch says, of a rank that `--watch` follows: what has not ended.
    std::optional<CollectiveCall> pending = {};
  };

  std::vector<Rank> ranks = {};
  const StackOptions& options;
};

// The texts of the processes of a tree, up to a limit, each but the first with a heading. After the deadline
// no further one is examined.
std::string text_of_processes(const std::vector<const ProcessStat*>& tree, TimePoint deadline,
                              const std::function<std::string(const ProcessStat&)>& text_of) {
  std::string text;
  std::size_t count = 0;
  bool in_time = true;
  for (; count < std::min(tree.size(), kMaxProcesses); ++count) {
    const ProcessStat& process = *tree[count];
    in_time = count == 0 || std::chrono::steady_clock::now() <= deadline;
    if (!in_time) break;
    if (count > 0) text += fmt::format("  process {} ({}):\n", process.pid, printable(process.name));
    text += text_of(process);
  }
  if (count < tree.size()) {
    const std::size_t omitted = tree.size() - count;
    text += fmt::format("  and {}{}\n", pluralize(omitted, "more process"),
                        in_time ? "" : ", for which there was no time");
  }
  return text;
}

std::string describe_rank(const RankView& rank) {
  return fmt::format("rank {} (local rank {}, pid {})", rank.rank, rank.local_rank, rank.pid);
}

struct PythonReport {
  std::string text = {};
  /// Of the rank's first Python process.
  std::optional<PythonPosition> position = {};
};

// The threads and Python stacks of the processes of a tree.
PythonReport python_report(const std::vector<const ProcessStat*>& tree, const StackOptions& options,
                           TimePoint deadline) {
  PythonReport report;
  bool is_first = true;
  report.text = text_of_processes(tree, deadline, [&](const ProcessStat& process) {
    std::string text = thread_lines(process.pid);
    const auto dump = is_python(process) ? python_stacks(process.pid, options) : std::nullopt;
    if (!dump) return text;
    if (dump->timed_out) return text + "  Python stacks: py-spy took too long\n";
    if (std::exchange(is_first, false)) report.position = position_of_main_thread(dump->text);
    return text + "  Python stacks:\n" + indented(printable(shorten_python_stacks(dump->text)), "    ");
  });
  return report;
}

PythonReport python_report_of_rank(const Snapshot::Rank& rank, const StackOptions& options,
                                   TimePoint deadline) {
  PythonReport report = python_report(rank.tree, options, deadline);
  report.text = fmt::format("{}: {}\n{}", describe_rank(*rank.view), to_string(rank.state), report.text);
  if (!rank.tree.empty()) report.text += flight_record_text(*rank.view, *rank.tree.front(), options);
  return report;
}

std::string native_text(const Snapshot::Rank& rank, const StackOptions& options, TimePoint deadline) {
  return "native stacks of " + describe_rank(*rank.view) + ":\n" +
         text_of_processes(rank.tree, deadline, [&](const ProcessStat& process) {
           return process.state == 'Z' ? std::string() : native_stacks(process.pid, options);
         });
}

// A debugger takes a second or more for a process with LibTorch: several run at once, and their results come
// in the order of the ranks. Returns false if there was no time for all.
template <class Result>
bool examine_each(const Snapshot& snapshot, TimePoint deadline,
                  Result (*examine)(const Snapshot::Rank&, const StackOptions&, TimePoint),
                  const std::function<void(const Snapshot::Rank&, Result)>& on_result) {
  const std::size_t parallelism = std::clamp(std::thread::hardware_concurrency(), 1U, kMaxParallel);
  std::vector<std::future<Result>> results;
  std::size_t next = 0;
  const auto take_next = [&] {
    Result result = results[next].get();
    on_result(snapshot.ranks[next++], std::move(result));
  };
  bool in_time = true;
  for (const Snapshot::Rank& rank : snapshot.ranks) {
    if (results.size() - next >= parallelism) take_next();
    in_time = results.empty() || std::chrono::steady_clock::now() <= deadline;
    if (!in_time) break;
    results.push_back(
        std::async(std::launch::async, examine, std::cref(rank), std::cref(snapshot.options), deadline));
  }
  while (next < results.size()) take_next();
  return in_time;
}

std::string left_out_text(const StackOptions& options) {
  return fmt::format("\nthe other ranks are left out: the time limit of {:g} s is over\n",
                     static_cast<double>(options.time_limit.count()) / 1000);
}

// The lines of the script say more than its page.
std::map<int, RankStanding> standings(const Snapshot& snapshot, const std::map<int, PythonReport>& reports) {
  std::map<int, RankStanding> by_line;
  std::map<int, RankStanding> by_page;
  for (const Snapshot::Rank& rank : snapshot.ranks) {
    const int number = rank.view->rank;
    const auto report = reports.find(number);
    if (report != reports.end() && report->second.position)
      by_line[number] = standing_of(*report->second.position);
    if (rank.view->ended.empty() && rank.view->progress) by_page[number] = standing_of(*rank.view->progress);
  }
  std::map<int, RankStanding> result = by_line.empty() ? by_page : by_line;
  for (const Snapshot::Rank& rank : snapshot.ranks) {
    const auto entry = result.find(rank.view->rank);
    if (rank.pending && entry != result.end())
      entry->second.position = with_pending(entry->second.position, *rank.pending);
  }
  return result;
}

// Both say more than what the kernel waits for.
Stragglers compare(const Snapshot& snapshot, const std::map<int, PythonReport>& reports) {
  std::map<int, std::string> ended;
  std::vector<RankState> states;
  for (const Snapshot::Rank& rank : snapshot.ranks) {
    states.push_back(rank.state);
    if (!rank.view->ended.empty()) ended[rank.view->rank] = rank.view->ended;
  }
  const std::map<int, RankStanding> standing = standings(snapshot, reports);
  return standing.empty() ? find_stragglers(states) : find_stragglers(standing, ended);
}

std::map<int, std::vector<CollectiveCall>> calls_of_ranks(const JobView& job,
                                                          const std::string& page_prefix) {
  if (page_prefix.empty()) return {};
  std::map<int, std::string> sockets;
  for (const RankView& rank : job.ranks)
    sockets[rank.rank] = flight_record_socket(page_prefix + std::to_string(rank.local_rank));
  return read_flight_records(sockets, std::chrono::steady_clock::now() + kRecordTime);
}

std::optional<CollectiveCall> pending_of(int rank, const std::map<int, std::vector<CollectiveCall>>& calls) {
  const auto entry = calls.find(rank);
  const CollectiveCall* pending = entry == calls.end() ? nullptr : pending_call(entry->second);
  return pending == nullptr ? std::nullopt : std::optional(*pending);
}

std::string state_line(const Snapshot::Rank& rank) {
  std::string line = fmt::format("rank {}: {}", rank.view->rank, to_string(rank.state));
  if (rank.view->progress && rank.view->ended.empty()) line += "; " + to_string(*rank.view->progress);
  if (rank.pending) line += "; " + to_string(*rank.pending) + " under way";
  return line + "\n";
}

}  // namespace

void ask_for_flight_record(int rank, const Environment& environment) {
  const auto prefix = environment.find("TORCH_NCCL_DEBUG_INFO_PIPE_FILE");
  if (!prefix) return;
  const std::string pipe = *prefix + std::to_string(rank) + ".pipe";
  const Descriptor fifo(::open(pipe.c_str(), O_WRONLY | O_NONBLOCK | O_CLOEXEC));
  struct stat info = {};
  if (!fifo || ::fstat(fifo.get(), &info) != 0 || !S_ISFIFO(info.st_mode)) return;
  // Any byte triggers a dump; without it the report is only shorter.
  [[maybe_unused]] const ssize_t ignored = ::write(fifo.get(), "1", 1);
}

fs::path find_flight_record(int rank, const Environment& environment) {
  std::vector<std::string> prefixes;
  for (const char* name : {"TORCH_FR_DUMP_TEMP_FILE", "TORCH_NCCL_DEBUG_INFO_TEMP_FILE"}) {
    if (const auto value = environment.find(name)) prefixes.push_back(*value);
  }
  prefixes.emplace_back("/tmp/nccl_trace_rank_");
  prefixes.push_back(environment.get("XDG_CACHE_HOME", environment.get("HOME") + "/.cache") +
                     "/torch/comm_lib_trace_rank_");
  fs::path newest;
  fs::file_time_type newest_time = fs::file_time_type::min();
  for (const std::string& prefix : prefixes) {
    std::error_code error;
    const fs::path file = prefix + std::to_string(rank);
    const auto time = fs::last_write_time(file, error);
    if (error || time <= newest_time) continue;
    newest = file;
    newest_time = time;
  }
  return newest;
}

// The last debugger of each kind may be started at the deadline, and the first of the ranks after one that
// was started then for what imports.
std::chrono::milliseconds max_time(const StackOptions& options) {
  return kSampleInterval + kRecordTime + 2 * options.time_limit + 3 * options.limits.time;
}

void write_stacks(const JobView& job, const StackOptions& original,
                  const std::function<void(std::string_view)>& write) {
  StackOptions options = original;
  options.environment.erase("DEBUGINFOD_URLS");
  for (const RankView& rank : job.ranks) ask_for_flight_record(rank.rank, options.environment);
  const ProcessTable previous = ProcessTable::read();
  std::this_thread::sleep_for(kSampleInterval);
  const ProcessTable current = ProcessTable::read();
  const std::map<int, std::vector<CollectiveCall>> calls = calls_of_ranks(job, options.page_prefix);
  Snapshot snapshot{.options = options};
  std::string states;
  for (const RankView& rank : job.ranks) {
    snapshot.ranks.push_back({&rank, state_of(rank, previous, current, kSampleInterval),
                              current.tree(rank.own_pid()), pending_of(rank.rank, calls)});
    states += state_line(snapshot.ranks.back());
  }
  const auto deadline = [&] { return std::chrono::steady_clock::now() + options.time_limit; };
  const TimePoint python_deadline = deadline();
  if (job.importing) {
    write(fmt::format("{} (--preload, pid {})\n{}", to_string(*job.importing), job.importing->pid,
                      python_report(current.tree(job.importing->own_pid()), options, python_deadline).text));
  }
  std::map<int, PythonReport> reports;
  const bool is_complete = examine_each<PythonReport>(
      snapshot, python_deadline, python_report_of_rank,
      [&](const Snapshot::Rank& rank, PythonReport report) { reports[rank.view->rank] = std::move(report); });
  const Stragglers stragglers = compare(snapshot, reports);
  std::string comparison;
  for (const std::string& line : {stragglers.text, differing_calls(calls)})
    comparison += line.empty() ? std::string() : line + "\n";
  write(comparison + states);
  std::ranges::stable_partition(snapshot.ranks, [&](const Snapshot::Rank& rank) {
    return std::ranges::find(stragglers.ranks, rank.view->rank) != stragglers.ranks.end();
  });

  const bool has_python =
      job.importing || std::ranges::any_of(snapshot.ranks, [](const Snapshot::Rank& rank) {
        return std::ranges::any_of(rank.tree, [](const ProcessStat* process) { return is_python(*process); });
      });
  if (has_python && find_program("py-spy", options.environment).empty())
    write("\nPython stacks are not shown: py-spy is not on PATH (pip install py-spy)\n");
  for (const Snapshot::Rank& rank : snapshot.ranks) {
    if (const auto report = reports.find(rank.view->rank); report != reports.end())
      write("\n" + report->second.text);
  }
  if (!is_complete) write(left_out_text(options));
  std::erase_if(snapshot.ranks, [](const Snapshot::Rank& rank) { return rank.tree.empty(); });
  if (find_program("gdb", options.environment).empty())
    return write("\nnative stacks are not shown: gdb is not on PATH\n");
  const auto write_text = [&](const Snapshot::Rank&, const std::string& text) { write("\n" + text); };
  if (!examine_each<std::string>(snapshot, deadline(), native_text, write_text))
    write(left_out_text(options));
}

}  // namespace acc::launcher
