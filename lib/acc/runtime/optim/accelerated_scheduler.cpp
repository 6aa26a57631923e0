// SPDX-License-Identifier: Apache-2.0
#include "acc/runtime/optim/accelerated_scheduler.hpp"

#include <fmt/format.h>
#include <torch/optim/schedulers/lr_scheduler.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "acc/base/error.hpp"

namespace acc::detail {

int SchedulerRule::steps_due() const {
  if (!step_with_optimizer) return 1;
  if (!gradients->sync_gradients()) return 0;
  return std::ranges::any_of(optimizers, &Optimizer::step_was_skipped) ? 0 : steps;
}

namespace {

using torch::optim::LRScheduler;

// Gives access to protected members of LibTorch's schedulers.
struct Access : LRScheduler {
  using LRScheduler::get_current_lrs;
  using LRScheduler::step_count_;
};

}  // namespace

void require_optimizer(const LRScheduler& scheduler) {
  if (!(scheduler.*&Access::get_current_lrs)().empty()) return;
  throw Error({.what = "its optimizer has been moved",
               .where = "prepare: scheduler",
               .hint = "create the optimizer with std::make_shared, or the scheduler with the prepared "
                       "optimizer's native()"});
}

std::string scheduler_state(const LRScheduler& scheduler) {
  return nlohmann::json{{"_step_count", scheduler.*&Access::step_count_}}.dump();
}

void load_scheduler_state(LRScheduler& scheduler, std::string_view state) {
  try {
    scheduler.*& Access::step_count_ = nlohmann::json::parse(state).at("_step_count").get<unsigned>();
  } catch (const nlohmann::json::exception& error) {
    throw Error({.kind = ErrorKind::config,
                 .what = fmt::format("is not the state of a scheduler: {}", error.what()),
                 .where = "scheduler state"});
  }
}

}  // namespace acc::detail
