// SPDX-License-Identifier: Apache-2.0
#include "acc/runtime/optim/gradient_state.hpp"

#include <fmt/format.h>

#include "acc/base/error.hpp"

namespace acc {

GradientState::GradientState(int num_steps, GradientAccumulationOptions options) : options_(options) {
  set_num_steps(num_steps);
}

void GradientState::set_num_steps(int num_steps) {
  if (num_steps < 1) {
    throw Error({.what = fmt::format("must be at least 1, not {}", num_steps),
                 .where = "gradient_accumulation_steps"});
  }
  num_steps_ = num_steps;
}

void GradientState::next_batch(bool end_of_dataloader) {
  if (options_.sync_with_dataloader && end_of_dataloader) {
    step_ = 0;
    sync_gradients_ = true;
    return;
  }
  ++step_;
  sync_gradients_ = step_ % num_steps_ == 0;
}

}  // namespace acc
