// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <string>

#include "acc/launch/reporter.hpp"

namespace acc::launcher {

/// What every line of the event log says besides the event.
struct EventContext {
  std::string run_id = {};
  std::string host = {};
  /// Of this node, in the round that runs or ran last.
  int node_rank = 0;
  int attempt = 0;
  std::chrono::system_clock::time_point time = {};
};

/// The event as one line of JSON, without its end: configs/events.schema.json. Fields are only ever added.
std::string event_json(const Event& event, const EventContext& context);

}  // namespace acc::launcher
