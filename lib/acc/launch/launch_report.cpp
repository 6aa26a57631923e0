// SPDX-License-Identifier: Apache-2.0
#include "acc/launch/launch_report.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <csignal>
#include <string_view>

#include "acc/base/error.hpp"
#include "acc/base/lost_peer.hpp"
#include "acc/base/text.hpp"

namespace acc::launcher {

bool asks_for_requeue(const LaunchReport& report) {
  const bool failed = report.first_failure && !is_consequence(*report.first_failure);
  const int others = report.group_code.value_or(0);
  return report.preempted && !report.supervisor_lost && !report.hung && !failed &&
         report.killed_ranks.empty() && (others == 0 || others == kRequeueCode);
}

int exit_code_of(const LaunchReport& report) {
  if (report.supervisor_lost) return 128 + SIGKILL;
  if (asks_for_requeue(report)) return kRequeueCode;
  if (report.stop_signal) return 128 + *report.stop_signal;
  if (report.hung) return kHungCode;
  int code = 0;
  if (report.first_failure) code = shell_code(report.first_failure->status);
  if (report.group_code) code = *report.group_code;
  if (code == 0 && report.output_lost) return exit_code(ErrorKind::system);
  return code;
}

namespace {

// The message of a traceback: its last line that is not empty or indented.
std::string last_message(std::string_view text) {
  std::string message;
  for (const std::string& line : split(text, '\n')) {
    if (!line.empty() && line.front() != ' ' && line.front() != '\t') message = line;
  }
  return message;
}

// What an uncaught C++ exception says, without the stack that LibTorch's have in it; nullopt: there is none.
std::optional<std::string_view> uncaught_what(std::string_view text) {
  constexpr std::string_view kWhat = "\n  what():  ";
  const std::size_t begin = text.rfind(kWhat);
  if (begin == std::string_view::npos) return std::nullopt;
  text = text.substr(begin + kWhat.size());
  return text.substr(0, std::min(text.find("\nException raised from "), text.find("\nframe #")));
}

// torch writes whole seconds, so nothing finer can be compared with them.
std::chrono::sys_seconds second_of_failure(const WorkerFailure& failure) {
  const bool is_known = failure.error_file && failure.error_file->time;
  return std::chrono::floor<std::chrono::seconds>(is_known ? *failure.error_file->time : failure.time);
}

bool is_exact(const WorkerFailure& failure) {
  return failure.error_file && failure.error_file->time && failure.error_file->exact;
}

bool failed_before(const WorkerFailure& one, const WorkerFailure& other) {
  if (!one.error_file || !one.error_file->time) return false;
  if (is_exact(one) && is_exact(other)) return *one.error_file->time < *other.error_file->time;
  return second_of_failure(one) < second_of_failure(other);
}

}  // namespace

bool is_consequence(const WorkerFailure& failure) {
  // An uncaught C++ exception ends in SIGABRT; a lost connection causes no other signal.
  const auto* signaled = std::get_if<Signaled>(&failure.status);
  if (signaled != nullptr && signaled->signal != SIGABRT) return false;
  if (const auto& file = failure.error_file) {
    if (file->consequence || names_lost_peer(file->message)) return true;
    if (file->valid) return false;
    // The worker may have been killed, or the disk full, while it wrote. What stderr ends with may be of a
    // connection that was lost after the error that the file and stderr have told.
    const std::string_view told = told_message(file->message);
    if (!told.empty() && failure.stderr_tail.find(told) != std::string::npos) return false;
  }
  const auto what = signaled != nullptr ? uncaught_what(failure.stderr_tail) : std::nullopt;
  return names_lost_peer(what ? std::string(*what) : last_message(failure.stderr_tail));
}

namespace {

bool is_lost_by_another(const WorkerFailure& failure, const std::vector<WorkerFailure>& failures) {
  return std::ranges::any_of(failures, [&](const WorkerFailure& other) {
    return other.error_file && std::ranges::count(other.error_file->lost_ranks, failure.rank) > 0;
  });
}

}  // namespace

std::size_t find_root_cause(const std::vector<WorkerFailure>& failures) {
  // How near to the cause a worker is.
  const auto nearness_of = [&](const WorkerFailure& failure) {
    return !is_consequence(failure) ? 2 : is_lost_by_another(failure, failures) ? 1 : 0;
  };
  std::size_t cause = 0;
  for (std::size_t i = 1; i < failures.size(); ++i) {
    const int nearness = nearness_of(failures[i]);
    const int nearest = nearness_of(failures[cause]);
    if (nearness != nearest ? nearness > nearest : failed_before(failures[i], failures[cause])) cause = i;
  }
  return cause;
}

namespace {

bool matches(const FailureKinds& kinds, const WorkerFailure& failure) {
  if (kinds.oom && failure.out_of_memory) return true;
  if (const auto* exited = std::get_if<Exited>(&failure.status))
    return kinds.exit_codes.contains(exited->code);
  return kinds.any_signal || kinds.signals.contains(std::get<Signaled>(failure.status).signal);
}

}  // namespace

RestartDecision decide_restart(const LaunchPlan& plan, int restarts, const WorkerFailure& failure,
                               std::chrono::milliseconds uptime) {
  if (restarts >= plan.max_restarts) return {};
  const bool wanted = plan.retry_on.all || matches(plan.retry_on.included, failure);
  if (!wanted || matches(plan.retry_on.excluded, failure)) {
    return {.reason = fmt::format("not restarted: {} is not among the failures of --retry-on",
                                  failure.out_of_memory ? "lack of memory" : to_string(failure.status))};
  }
  if (uptime < plan.min_uptime) {
    return {.reason =
                fmt::format("not restarted: failed {} after its start (--min-uptime {:g})",
                            seconds_text(uptime), std::chrono::duration<double>(plan.min_uptime).count())};
  }
  return {.restart = true};
}

}  // namespace acc::launcher
