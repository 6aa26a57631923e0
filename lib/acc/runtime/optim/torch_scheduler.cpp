// SPDX-License-Identifier: Apache-2.0
#include "acc/runtime/optim/torch_scheduler.hpp"

#include <fmt/format.h>
#include <torch/optim/schedulers/lr_scheduler.h>

#include <nlohmann/json.hpp>

#include "acc/base/error.hpp"

namespace acc {
namespace {

using torch::optim::LRScheduler;

// LibTorch gives what a scheduler knows to derived classes alone.
struct Access : LRScheduler {
  using LRScheduler::get_current_lrs;
  using LRScheduler::step_count_;
};

}  // namespace

void require_optimizer(const LRScheduler& scheduler) {
  if (!(scheduler.*&Access::get_current_lrs)().empty()) return;
  throw Error({.what = "its optimizer was moved away",
               .where = "prepare: scheduler",
               .hint = "make the optimizer with std::make_shared, or the scheduler from the prepared "
                       "optimizer's native()"});
}

std::string state_of(const LRScheduler& scheduler) {
  return nlohmann::json{{"_step_count", scheduler.*&Access::step_count_}}.dump();
}

void load_state_of(LRScheduler& scheduler, std::string_view state) {
  try {
    scheduler.*& Access::step_count_ = nlohmann::json::parse(state).at("_step_count").get<unsigned>();
  } catch (const nlohmann::json::exception& error) {
    throw Error({.kind = ErrorKind::config,
                 .what = fmt::format("is not what a scheduler wrote: {}", error.what()),
                 .where = "scheduler state"});
  }
}

}  // namespace acc
