// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <utility>
#include <vector>

#include "acc/runtime/optim/gradient_state.hpp"
#include "acc/runtime/optim/optimizer.hpp"

namespace acc {

/// When a prepared scheduler steps, and how far.
struct SchedulerRule {
  std::shared_ptr<const GradientState> gradients = {};
  /// The scheduler waits when one of these left its last step out.
  std::vector<Optimizer> optimizers = {};
  /// Off: each call is one step.
  bool step_with_optimizer = true;
  /// Steps for one of the optimizer's: the number of processes, or 1 where they share a batch.
  int steps = 1;

  /// How many steps a call stands for, now.
  int steps_due() const;
};

/// A scheduler as Accelerator::prepare gives it back: it is called once a batch and steps as
/// accelerate 1.15's AcceleratedScheduler, by the rule above and never past the end of its schedule. Copies
/// are the same one.
template <class Native>
class AcceleratedScheduler {
 public:
  AcceleratedScheduler(std::shared_ptr<Native> native, SchedulerRule rule)
      : native_(std::move(native)), rule_(std::move(rule)) {}

  /// `arguments` are those of the scheduler's own step. Throws what that throws.
  template <class... Arguments>
  void step(const Arguments&... arguments) {
    for (int left = rule_.steps_due(); left > 0; --left) {
      if (rule_.step_with_optimizer && at_end()) return;
      native_->step(arguments...);
    }
  }

  /// The scheduler inside: `scheduler->last_lr()`.
  Native* operator->() const { return native_.get(); }
  const std::shared_ptr<Native>& native() const { return native_; }

 private:
  bool at_end() const {
    if constexpr (requires { native_->total_steps(); }) {
      const auto total = native_->total_steps();
      return total && native_->last_epoch() >= *total;
    } else {
      return false;
    }
  }

  std::shared_ptr<Native> native_;
  SchedulerRule rule_;
};

}  // namespace acc
