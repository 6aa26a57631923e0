// SPDX-License-Identifier: Apache-2.0
#include "acc/launch/text_reporter.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <csignal>

#include "acc/base/limit_hint.hpp"
#include "acc/base/printable.hpp"
#include "acc/base/short_size.hpp"
#include "acc/base/text.hpp"
#include "acc/control/job_table.hpp"
#include "acc/control/python_position.hpp"
#include "acc/control/rank_state.hpp"
#include "acc/launch/error_text.hpp"
#include "acc/launch/line_prefix.hpp"

namespace acc::launcher {

std::string ending_of(const WorkerFailure& failure) {
  if (failure.out_of_memory) return "was killed by the kernel for memory (OOM killer): signal 9 (SIGKILL)";
  if (std::holds_alternative<Exited>(failure.status)) return "failed with " + to_string(failure.status);
  std::string text = "was ended by " + to_string(failure.status);
  const bool killed = std::get<Signaled>(failure.status).signal == SIGKILL;
  if (killed) text += "; the kernel counted no OOM kill";
  return text;
}

namespace {

std::string_view last_line(std::string_view text) {
  while (text.ends_with('\n')) text.remove_suffix(1);
  return text.substr(text.rfind('\n') + 1);
}

void append_indented(std::string& block, std::string_view text) {
  while (text.ends_with('\n')) text.remove_suffix(1);
  for (const std::string& line : split(text, '\n')) block += "  | " + shown_line(line) + "\n";
}

// The traceback includes the message.
std::string text_of(const ErrorFile& file) {
  return readable_error(file.traceback.empty() ? file.message : file.traceback);
}

void append_error_file(std::string& block, const ErrorFile& file, const std::string& text) {
  const std::string note = file.valid ? "" : " (not the expected JSON; its text follows)";
  if (file.stays) {
    block += fmt::format("  error file: {}{}\n", file.path.string(), note);
  } else if (!text.empty()) {
    block += fmt::format("  its error file{}:\n", note);
  }
  if (!text.empty()) append_indented(block, text);
}

// The error file and standard error often have the same content: it is shown once, in its longer form.
void append_error(std::string& block, const WorkerFailure& failure) {
  const std::string& tail = failure.stderr_tail;
  const std::string text = failure.error_file ? text_of(*failure.error_file) : "";
  const bool is_in_tail = !text.empty() && tail.find(last_line(text)) != std::string::npos;
  const bool is_traceback = last_line(text).size() + 1 < text.size();
  if (failure.error_file) {
    const bool shown = is_in_tail && (failure.just_above || !is_traceback);
    append_error_file(block, *failure.error_file, shown ? "" : text);
  }
  if (tail.empty()) return;
  if (failure.just_above) {
    block += fmt::format("  the end of its stderr is just above: {}\n", shown_line(last_line(tail)));
  } else if (!is_in_tail || !is_traceback) {
    block += "  last lines of its stderr:\n";
    append_indented(block, tail);
  }
}

bool says(const WorkerFailure& failure, std::string_view text) {
  const auto& file = failure.error_file;
  return failure.stderr_tail.find(text) != std::string::npos ||
         (file &&
          (file->message.find(text) != std::string::npos || file->traceback.find(text) != std::string::npos));
}

// A crash of native code, of which Python says nothing by itself.
bool crashed_in_silence(const WorkerFailure& failure) {
  const auto* signaled = std::get_if<Signaled>(&failure.status);
  constexpr std::array kCrashes = {SIGSEGV, SIGBUS, SIGFPE, SIGILL};
  return signaled != nullptr && std::ranges::find(kCrashes, signaled->signal) != kCrashes.end() &&
         failure.stderr_tail.find("Fatal Python error: ") == std::string::npos;
}
// What a worker says of a limit that it met; of threads, OpenBLAS's and Python's words.
constexpr std::string_view kTooManyFiles = "Too many open files";
constexpr std::array<std::string_view, 4> kTooManyProcesses = {
    "can't start new thread", "pthread_create failed", "fork: Resource temporarily unavailable",
    "BlockingIOError: [Errno 11] Resource temporarily unavailable"};

std::string memory_text(const WorkerFailure& failure) {
  if (!failure.cgroup_memory) return "  no cgroup here limits its memory: the whole machine ran out of it\n";
  const auto& [limit, peak] = *failure.cgroup_memory;
  return fmt::format("  memory of its cgroup: limit {}{}\n", short_size(limit),
                     peak ? ", peak " + short_size(*peak) : "");
}

std::string xids_text(const std::vector<Xid>& xids) {
  std::vector<std::string> texts;
  for (const Xid& xid : xids) texts.push_back(to_string(xid));
  return fmt::format("  since the job's start the kernel has logged {}\n", shown_line(join(texts, ", ")));
}

// A missing module often means the wrong Python.
constexpr std::string_view kMissesModule = "ModuleNotFoundError: ";
// Of a script that makes its process group by itself, and runs as the single process of `acc launch`.
constexpr std::string_view kMissesRank = "environment variable RANK expected, but not set";
// What torch says of errors in kernels, such as a device-side assert, which a later call reports.
constexpr std::string_view kReportedLater = "CUDA kernel errors might be asynchronously reported";

}  // namespace

std::string summarize(const WorkerFailure& failure) {
  return fmt::format("rank {} (local rank {}, pid {}) on host {} {}", failure.rank, failure.local_rank,
                     failure.pid, failure.host, ending_of(failure));
}

// Where the script lost its connection, and to whom.
std::string lost_connection_text(const WorkerFailure& failure, const std::vector<int>& exited_ranks) {
  std::vector<std::string> parts;
  const auto& file = failure.error_file;
  const auto location =
      position_of_traceback(file && !file->traceback.empty() ? file->traceback : failure.stderr_tail);
  if (location)
    parts.push_back(fmt::format("rank {} lost its connection {}", failure.rank, to_string(*location)));
  if (!exited_ranks.empty())
    parts.push_back(name_ranks(exited_ranks) + " had ended before, with exit code 0");
  return parts.empty() ? "" : fmt::format("  {}\n", join(parts, "; "));
}

std::string failure_text(const WorkerFailure& failure, const std::string& python,
                         const std::vector<int>& exited_ranks) {
  std::string block = "acc: " + summarize(failure) + "\n";
  if (is_consequence(failure)) block += lost_connection_text(failure, exited_ranks);
  block += fmt::format("  time: {}, attempt: {}\n", timestamp(failure.time), failure.attempt);
  if (failure.out_of_memory) block += memory_text(failure);
  if (failure.xids && !failure.xids->empty()) block += xids_text(*failure.xids);
  append_error(block, failure);
  if (says(failure, kTooManyFiles)) block += fmt::format("  {}\n", limit_hint(EMFILE));
  if (std::ranges::any_of(kTooManyProcesses, [&](std::string_view text) { return says(failure, text); }))
    block += fmt::format("  {}\n", limit_hint(EAGAIN));
  if (!python.empty() && says(failure, kMissesModule))
    block += fmt::format("  its Python: {}; choose another with --python\n", python);
  if (says(failure, kMissesRank))
    block +=
        "  a single process gets no rank, as from accelerate: --nproc_per_node 1 gives it one; with "
        "accelerate's Accelerator it needs none\n";
  if (says(failure, kReportedLater))
    block += "  with CUDA_LAUNCH_BLOCKING=1 the call that failed reports the error, not a later one\n";
  if (!python.empty() && crashed_in_silence(failure))
    block += "  with PYTHONFAULTHANDLER=1 Python shows where it crashed\n";
  return block;
}

namespace {

std::string text_of(const Stopping& event) {
  if (event.signal == SIGPIPE) {
    return event.workers == 0 ? "acc: the reader of its output is gone\n"
                              : fmt::format("acc: the reader of its output is gone, stopping {} (grace {})\n",
                                            pluralize(event.workers, "worker"), seconds_text(event.grace));
  }
  if (event.workers == 0) return fmt::format("acc: {} received, ending\n", signal_name(event.signal));
  return fmt::format("acc: {} received, stopping {} (grace {})\n", signal_name(event.signal),
                     pluralize(event.workers, "worker"), seconds_text(event.grace));
}

std::string text_of(const SignalPassedOn& event) {
  const std::vector<int>& deaf = event.ranks_without_handler;
  const std::string from = event.host.empty() ? "" : " by node " + event.host;
  std::string text =
      fmt::format("acc: {} received{}, the job is to end soon", signal_name(event.signal), from);
  if (!event.ranks.empty()) text += fmt::format("; passed on to {}", name_ranks(event.ranks));
  if (!deaf.empty()) {
    text += fmt::format("; {} {} no handler for it and {} left alone", name_ranks(deaf),
                        deaf.size() == 1 ? "has" : "have", deaf.size() == 1 ? "was" : "were");
  }
  return text + "\n";
}

std::string text_of(const Killed& event) {
  const std::string ranks = name_ranks(event.ranks);
  const std::string_view were = event.ranks.size() == 1 ? "was" : "were";
  if (event.second_signal) return fmt::format("acc: second signal: {} {} killed\n", ranks, were);
  return fmt::format("acc: {} did not end within {} and {} killed\n", ranks, seconds_text(event.grace), were);
}

std::string text_of(const Restarting& event) {
  const std::string cause = event.cause ? summarize(*event.cause) : "the job hung";
  return fmt::format("acc: {}; restart {} of {}\n", cause, event.restart, event.max_restarts);
}

std::string text_of(const HangFound& event) {
  constexpr std::array<std::string_view, 3> kThen = {
      "the job goes on (--on-hang); their stacks:",
      "the workers are stopped, and started again while restarts are left (--on-hang), after their stacks:",
      "the job is stopped (--on-hang) after their stacks:"};
  constexpr std::array<std::string_view, 3> kNothing = {"written anything or used the CPU",
                                                        "written anything", "made progress"};
  return fmt::format("acc: no rank has {} for {}; where they stand:\n{}acc: {}\n",
                     kNothing.at(static_cast<std::size_t>(event.watch)), rounded_seconds_text(event.idle),
                     event.rank_states, kThen.at(static_cast<std::size_t>(event.action)));
}

std::string text_of(const HangStacksFound& event) {
  return event.text;
}

// `31 ms`, `1.2 s`
std::string short_time(std::chrono::duration<double> time) {
  return time.count() < 1 ? fmt::format("{:.3g} ms", time.count() * 1000) : rounded_seconds_text(time);
}

// `18 % slower`, where there is something to compare with.
std::string slower_text(const SlowSection& slow) {
  constexpr int kMaxPercent = 999;
  const double percent =
      (static_cast<double>(slow.spent.count()) / static_cast<double>(slow.reference.count()) - 1) * 100;
  return slow.reference.count() > 0 && percent <= kMaxPercent ? fmt::format("{:.0f} % slower", percent)
                                                              : "slower";
}

std::string text_of(const StragglerFound& event) {
  const SlowSection& slow = event.slow;
  const std::string where = slow.section == acc::Section::other ? "outside of all sections"
                                                                : "in " + std::string(name_of(slow.section));
  const std::string on = event.host.empty() ? "" : " on host " + event.host;
  return fmt::format("acc: warning: rank {}{} has been {} {} for {} ({} a step, {} {})\n", event.rank, on,
                     slower_text(slow), where, short_time(slow.duration), short_time(slow.spent),
                     event.other ? fmt::format("rank {} takes", *event.other) : "the median is",
                     short_time(slow.reference));
}

std::string text_of(const Finished& event, const std::string& host, const std::string& python) {
  if (event.report.hung) return fmt::format("acc: the job hung and was stopped (exit code {})\n", kHungCode);
  if (asks_for_requeue(event.report))
    return fmt::format("acc: the job was preempted and ended in time; exit code {} asks for its requeue\n",
                       kRequeueCode);
  if (!event.report.first_failure) return {};
  const WorkerFailure& failure = *event.report.first_failure;
  std::string text = failure_text(failure, failure.host == host ? python : "", event.report.ended_ranks);
  const std::vector<int>& stopped = event.report.stopped_ranks;
  if (!stopped.empty()) {
    text += fmt::format("  {} other {} stopped: {}\n", stopped.size(),
                        stopped.size() == 1 ? "worker was" : "workers were", name_ranks(stopped));
  }
  return text;
}

std::string text_of(const StateFlushing&) {
  return "acc: the newest state in memory is being copied to the disk\n";
}

std::string text_of(const StateFlushed& event) {
  const FlushResult& result = event.result;
  std::string text;
  for (const std::string& damage : result.damaged)
    text += fmt::format("acc: warning: a state in memory is damaged: {}\n", damage);
  if (!result.problem.empty())
    return text +
           fmt::format("acc: the newest state in memory could not be put on the disk: {}\n", result.problem);
  return text + fmt::format("acc: the newest state in memory is on the disk: {}\n", result.folder.string());
}

std::string text_of(const Warning& event) {
  return fmt::format("acc: warning: {}\n", event.text);
}
std::string text_of(const Failed& event) {
  return fmt::format("acc: {}\n", event.text);
}
std::string text_of(const WaitingForNodes& event) {
  return fmt::format("acc: {}\n", event.text);
}

std::string text_of(const PreflightFinished& event) {
  return event.result.text.empty() ? "" : fmt::format("acc: {}", event.result.text);
}

std::string text_of(const GroupChanged& event) {
  return fmt::format("acc: {}{}\n", event.text, event.restart ? "; the nodes meet again" : "");
}

// For programs alone.
std::string text_of(const JobStarted&) {
  return {};
}
std::string text_of(const GpuUseNoted&) {
  return "";
}

std::string text_of(const ProgressNoted&) {
  return {};
}

std::string text_of(const Suspended&) {
  return {};
}
std::string text_of(const Resumed&) {
  return {};
}
std::string text_of(const AttemptStarted& event) {
  return fmt::format("acc: attempt {} begins\n", event.attempt);
}
std::string text_of(const WorkerStarted& event) {
  return fmt::format("acc: rank {} (local rank {}) is process {}\n", event.rank, event.local_rank, event.pid);
}
std::string text_of(const WorkerFinished& event) {
  return fmt::format("acc: rank {} (local rank {}, pid {}) ended with {}\n", event.rank, event.local_rank,
                     event.pid, to_string(event.status));
}

template <class Kind>
constexpr log::Level kLevel = log::Level::warn;
template <>
constexpr log::Level kLevel<AttemptStarted> = log::Level::debug;
template <>
constexpr log::Level kLevel<WorkerStarted> = log::Level::debug;
template <>
constexpr log::Level kLevel<WorkerFinished> = log::Level::debug;
template <>
constexpr log::Level kLevel<Stopping> = log::Level::info;
template <>
constexpr log::Level kLevel<SignalPassedOn> = log::Level::info;
template <>
constexpr log::Level kLevel<WaitingForNodes> = log::Level::info;
template <>
constexpr log::Level kLevel<PreflightFinished> = log::Level::info;
template <>
constexpr log::Level kLevel<StateFlushing> = log::Level::info;
template <>
constexpr log::Level kLevel<StateFlushed> = log::Level::info;
template <>
constexpr log::Level kLevel<Failed> = log::Level::error;
template <>
constexpr log::Level kLevel<Finished> = log::Level::error;

log::Level level_of(const Event& event) {
  const auto* preflight = std::get_if<PreflightFinished>(&event);
  if (preflight != nullptr && !preflight->result.clean) return log::Level::warn;
  const auto* flushed = std::get_if<StateFlushed>(&event);
  if (flushed != nullptr && !flushed->result.problem.empty()) return log::Level::error;
  if (flushed != nullptr && !flushed->result.damaged.empty()) return log::Level::warn;
  return std::visit([](const auto& one) { return kLevel<std::decay_t<decltype(one)>>; }, event);
}

}  // namespace

void TextReporter::report(const Event& event) {
  const std::string text = std::visit(
      [&](const auto& alternative) {
        if constexpr (std::is_same_v<decltype(alternative), const Finished&>) {
          return text_of(alternative, host_, python_);
        } else {
          return text_of(alternative);
        }
      },
      event);
  if (!text.empty()) write_(level_of(event), text);
}

}  // namespace acc::launcher
