// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <functional>
#include <string>
#include <string_view>
#include <utility>

#include "acc/launch/reporter.hpp"

namespace acc::launcher {

/// The fields that every line of the event log has besides the event's own.
struct EventContext {
  std::string run_id = {};
  std::string host = {};
  /// Rank of this node in the current or last round.
  int node_rank = 0;
  int attempt = 0;
  std::chrono::system_clock::time_point time = {};
};

/// The event as one line of JSON, without the newline, by configs/events.schema.json. Fields are only ever
/// added.
std::string event_json(const Event& event, const EventContext& context);

/// Writes every event as a line of JSON.
class JsonReporter : public Reporter {
 public:
  /// `write` receives whole lines.
  JsonReporter(std::string run_id, std::string host, std::function<void(std::string_view)> write)
      : context_{.run_id = std::move(run_id), .host = std::move(host)}, write_(std::move(write)) {}

  void report(const Event& event) override;

 private:
  EventContext context_;
  std::function<void(std::string_view)> write_;
};

}  // namespace acc::launcher
