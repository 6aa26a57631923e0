// SPDX-License-Identifier: Apache-2.0
#include "acc/launch/text_reporter.hpp"

#include <fmt/format.h>

#include <array>
#include <csignal>

#include "acc/launch/failure_text.hpp"

namespace acc::launcher {
namespace {

std::string seconds(std::chrono::milliseconds duration) {
  return fmt::format("{:g} s", static_cast<double>(duration.count()) / 1000);
}

std::string workers(int count) {
  return fmt::format("{} {}", count, count == 1 ? "worker" : "workers");
}

std::string text_of(const Stopping& event) {
  if (event.signal == SIGPIPE) {
    return event.workers == 0 ? "acc: nobody reads its output any more\n"
                              : fmt::format("acc: nobody reads its output any more, stopping {} (grace {})\n",
                                            workers(event.workers), seconds(event.grace));
  }
  if (event.workers == 0) return fmt::format("acc: {} received, ending\n", signal_name(event.signal));
  return fmt::format("acc: {} received, stopping {} (grace {})\n", signal_name(event.signal),
                     workers(event.workers), seconds(event.grace));
}

std::string text_of(const Killed& event) {
  const std::string ranks = name_ranks(event.ranks);
  const std::string_view were = event.ranks.size() == 1 ? "was" : "were";
  if (event.asked) return fmt::format("acc: second signal: {} {} killed\n", ranks, were);
  return fmt::format("acc: {} did not end within {} and {} killed\n", ranks, seconds(event.grace), were);
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
  return fmt::format("acc: no rank has written anything{} for {:.3g} s; where they stand:\n{}acc: {}\n",
                     event.cpu_counts ? " or used the CPU" : "",
                     static_cast<double>(event.idle.count()) / 1000, event.places,
                     kThen.at(static_cast<std::size_t>(event.then)));
}

std::string text_of(const HangStacksFound& event) {
  return event.text;
}

std::string text_of(const Finished& event, const std::string& host, const std::string& python) {
  if (event.report.hung) return fmt::format("acc: the job hung and was stopped (exit code {})\n", kHungCode);
  if (!event.report.first_failure) return {};
  const WorkerFailure& failure = *event.report.first_failure;
  std::string text = failure_text(failure, failure.host == host ? python : "");
  const std::vector<int>& stopped = event.report.stopped_ranks;
  if (!stopped.empty()) {
    text += fmt::format("  {} other {} stopped: {}\n", stopped.size(),
                        stopped.size() == 1 ? "worker was" : "workers were", name_ranks(stopped));
  }
  return text;
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

std::string text_of(const GroupChanged& event) {
  return fmt::format("acc: {}{}\n", event.text, event.again ? "; the nodes meet again" : "");
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
constexpr log::Level kLevel<WaitingForNodes> = log::Level::info;
template <>
constexpr log::Level kLevel<Failed> = log::Level::error;
template <>
constexpr log::Level kLevel<Finished> = log::Level::error;

}  // namespace

void TextReporter::report(const Event& event) {
  const std::string text = std::visit(
      [&](const auto& one) {
        if constexpr (std::is_same_v<decltype(one), const Finished&>) {
          return text_of(one, host_, python_);
        } else {
          return text_of(one);
        }
      },
      event);
  if (text.empty()) return;
  write_(std::visit([](const auto& one) { return kLevel<std::decay_t<decltype(one)>>; }, event), text);
}

}  // namespace acc::launcher
