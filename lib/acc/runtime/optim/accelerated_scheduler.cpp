// SPDX-License-Identifier: Apache-2.0
#include "acc/runtime/optim/accelerated_scheduler.hpp"

#include <algorithm>

namespace acc {

int SchedulerRule::steps_due() const {
  if (!step_with_optimizer) return 1;
  if (!gradients->sync_gradients()) return 0;
  return std::ranges::any_of(optimizers, &Optimizer::step_was_skipped) ? 0 : steps;
}

}  // namespace acc
