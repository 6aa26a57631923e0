// SPDX-License-Identifier: Apache-2.0
#include "acc/launch/json_reporter.hpp"

namespace acc::launcher {

void JsonReporter::report(const Event& event) {
  if (const auto* started = std::get_if<AttemptStarted>(&event)) {
    context_.attempt = started->attempt;
    context_.node_rank = started->round.machine_rank;
  }
  context_.time = std::chrono::system_clock::now();
  write_(event_json(event, context_) + '\n');
}

}  // namespace acc::launcher
