// SPDX-License-Identifier: Apache-2.0
#include "acc/plan/memory_checkpoints.hpp"

#include <fmt/format.h>

#include "acc/base/text.hpp"

namespace acc::launcher {

void plan_memory_checkpoints(const Settings& settings, LaunchPlan& plan) {
  const std::string& size = settings[key::memory_checkpoints];
  if (size.empty()) return;
  const std::string& origin = settings.origin(key::memory_checkpoints);
  plan.memory_checkpoints = parse_byte_size(size, origin);
  if (!plan.delegated) return;
  plan.memory_checkpoints = 0;
  plan.notes.push_back(fmt::format("memory_checkpoints ({}) has no effect: {} starts the workers", origin,
                                   plan.worker_command.front()));
}

}  // namespace acc::launcher
