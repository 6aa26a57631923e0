// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <fmt/format.h>

#include <cstdint>
#include <string>

#include "acc/report/job_history.hpp"

namespace acc::test {

/// An event log, made by hand. Times are in seconds.
class EventLogText {
 public:
  explicit EventLogText(std::string host = "node0", int node_rank = 0, std::string run_id = "job7")
      : host_(std::move(host)), node_rank_(node_rank), run_id_(std::move(run_id)) {}

  /// `fields`: JSON of the event's own, as in `"rank":3`.
  EventLogText& add(double time, const std::string& event, int attempt = 0, const std::string& fields = "") {
    text_ += fmt::format(
        R"({{"schema":1,"event":"{}","time_ns":{},"run_id":"{}","host":"{}","node_rank":{},"attempt":{}{}{}}})",
        event, static_cast<std::int64_t>(time * 1e9), run_id_, host_, node_rank_, attempt,
        fields.empty() ? "" : ",", fields);
    text_ += '\n';
    return *this;
  }

  /// Of one rank. `spent`: seconds by section, as in `"data":[3]`.
  EventLogText& progress(double time, int attempt, int rank, int steps, double since_step,
                         const std::string& spent = "", bool over_restarts = true) {
    return add(
        time, "progress", attempt,
        fmt::format(R"("ranks":[{}],"steps":[{}],"counts_over_restarts":[{}],"since_step_seconds":[{}],)"
                    R"("spent_seconds":{{{}}})",
                    rank, steps, over_restarts, since_step, spent));
  }

  const std::string& text() const { return text_; }

 private:
  std::string host_;
  int node_rank_;
  std::string run_id_;
  std::string text_ = {};
};

/// What logs of several nodes tell.
template <class... Logs>
launcher::JobHistory history_of(const Logs&... logs) {
  launcher::EventLines lines;
  (launcher::add_event_lines(lines, logs.text(), "log"), ...);
  return launcher::job_history(std::move(lines));
}

}  // namespace acc::test
