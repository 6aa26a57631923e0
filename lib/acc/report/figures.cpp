// SPDX-License-Identifier: Apache-2.0
#include "acc/report/figures.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "acc/base/text.hpp"
#include "acc/report/gpu_totals.hpp"
#include "acc/report/html_text.hpp"

namespace acc::launcher {
namespace {

using Json = nlohmann::ordered_json;

std::string with_restarts(const JobHistory& history) {
  if (history.restarts == 0) return "";
  return fmt::format(", with {}", pluralize(static_cast<std::uint64_t>(history.restarts), "restart"));
}

Json attempts_json(const JobHistory& history) {
  Json attempts = Json::array();
  for (const AttemptRecord& attempt : history.attempts) {
    attempts.push_back({{"attempt", attempt.number},
                        {"begin_s", attempt.time.begin - history.time.begin},
                        {"end_s", attempt.time.end - history.time.begin},
                        {"nodes", attempt.nodes},
                        {"world_size", attempt.world_size},
                        {"problem", attempt.problem.empty() ? Json() : Json(attempt.problem)}});
  }
  return attempts;
}

Json last_event_json(const JobHistory& history) {
  const LastEvent& last = history.last;
  if (last.name.empty()) return nullptr;
  return {{"event", last.name},
          {"time_s", last.time - history.time.begin},
          {"host", last.host},
          {"running_ranks", last.running}};
}

Json failures_json(const JobHistory& history) {
  Json failures = Json::array();
  for (const FailureRecord& failure : history.failures) {
    failures.push_back({{"time_s", failure.time - history.time.begin},
                        {"attempt", failure.attempt},
                        {"rank", failure.rank},
                        {"host", failure.host},
                        {"status", failure.status},
                        {"message", failure.message},
                        {"last_words", failure.stderr_tail}});
  }
  return failures;
}

Json seconds_json(const TimeShares& shares) {
  return {{"counted", shares.counted},   {"repeated", shares.repeated},     {"data", shares.data},
          {"saving", shares.saving},     {"evaluation", shares.evaluation}, {"waiting", shares.waiting},
          {"starting", shares.starting}, {"restarting", shares.restarting}, {"ending", shares.ending},
          {"unknown", shares.unknown}};
}

Json gpus_json(const JobHistory& history) {
  if (history.gpus.empty()) return nullptr;
  const GpuTotals totals = gpu_totals(history);
  const auto if_known = [](const std::optional<double>& value) { return value ? Json(*value) : Json(); };
  return {{"count", totals.gpus},
          {"mean_use_percent", if_known(totals.mean_percent)},
          {"mean_watts", if_known(totals.mean_watts)},
          {"joules", if_known(totals.joules)}};
}

bool is_interpreter(std::string_view word) {
  return word.starts_with("python") || word.starts_with("pypy") || word == "env" || word == "bash" ||
         word == "sh";
}

// `progress on node1, at 2026-11-28 01:20:00 UTC`
std::string last_event_text(const LastEvent& last) {
  std::string name = last.name;
  std::ranges::replace(name, '_', ' ');
  return fmt::format("{}{}, at {}", name, last.host.empty() ? "" : " on " + last.host, date_text(last.time));
}

// Of logs without an end: what is known of it.
std::string unended_text(const JobHistory& history, const std::string& duration) {
  std::string text = fmt::format("No end in these logs; they reach over {}.", duration);
  if (history.last.name.empty()) return text;
  text += fmt::format(" The last event is {}", last_event_text(history.last));
  const std::set<int>& running = history.last.running;
  if (running.empty()) return text + "; no rank was running.";
  return text + fmt::format("; {} {} running. The job goes on, or acc or its machine ended at once.",
                            name_ranks({running.begin(), running.end()}),
                            running.size() == 1 ? "was" : "were");
}

}  // namespace

std::string job_title(const JobHistory& history) {
  for (const std::string& word : history.command) {
    std::string name = word.substr(word.rfind('/') + 1);
    if (!name.empty() && !word.starts_with('-') && !is_interpreter(name)) return name;
  }
  return "job";
}

std::string outcome_text(const JobHistory& history) {
  const std::string duration = duration_text(history.time.length()) + with_restarts(history);
  if (!history.exit_code) return unended_text(history, duration);
  if (!history.stop_signal.empty())
    return fmt::format("Stopped by {} after {}.", history.stop_signal, duration);
  if (*history.exit_code == 0) return fmt::format("Succeeded after {}.", duration);
  if (!history.failed.empty()) return fmt::format("Failed after {}: {}", duration, history.failed);
  if (const std::optional<FailureRecord>& cause = history.cause)
    return fmt::format("Failed after {}: rank {}{} ended with {}.", duration, cause->rank,
                       cause->host.empty() ? "" : " on " + cause->host, cause->status);
  if (!history.attempts.empty() && !history.attempts.back().problem.empty())
    return fmt::format("Failed with exit code {} after {}: {}.", *history.exit_code, duration,
                       history.attempts.back().problem);
  return fmt::format("Failed with exit code {} after {}.", *history.exit_code, duration);
}

int world_size_of(const JobHistory& history) {
  int size = 0;
  for (const AttemptRecord& attempt : history.attempts) size = std::max(size, attempt.world_size);
  return size;
}

std::string figures_json(const JobHistory& history) {
  const Goodput goodput = goodput_of(history);
  Json moments = Json::array();
  const char* const kinds[] = {"restart", "hang", "straggler", "nodes", "signal", "state", "warning"};
  for (const Moment& moment : history.moments)
    moments.push_back({{"time_s", moment.time - history.time.begin},
                       {"kind", kinds[static_cast<int>(moment.kind)]},
                       {"host", moment.host},
                       {"text", moment.text}});
  const Json figures = {{"schema", 1},
                        {"run_id", history.run_id},
                        {"title", job_title(history)},
                        {"outcome", outcome_text(history)},
                        {"exit_code", history.exit_code ? Json(*history.exit_code) : Json()},
                        {"last_event", last_event_json(history)},
                        {"begin_unix_s", history.time.begin},
                        {"wall_s", history.time.length()},
                        {"hosts", history.hosts},
                        {"world_size", world_size_of(history)},
                        {"restarts", history.restarts},
                        {"steps", goodput.steps},
                        {"goodput", goodput.ratio()},
                        {"repeated_steps_known", goodput.repeated_is_known},
                        {"seconds", seconds_json(goodput.shares)},
                        {"gpus", gpus_json(history)},
                        {"attempts", attempts_json(history)},
                        {"failures", failures_json(history)},
                        {"events", moments},
                        {"notes", history.notes}};
  return figures.dump(2, ' ', false, Json::error_handler_t::replace) + '\n';
}

}  // namespace acc::launcher
