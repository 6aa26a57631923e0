// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "acc/runtime/optim/gradients.hpp"
#include "acc/runtime/optim/optimizer.hpp"

namespace torch::optim {
class LRScheduler;
}

namespace acc {

namespace detail {

/// Determines when a prepared scheduler steps, and by how many steps.
struct SchedulerRule {
  std::shared_ptr<const GradientState> gradients = {};
  /// The scheduler does not step if one of these optimizers skipped its last step.
  std::vector<Optimizer> optimizers = {};
  /// If false, each call is one step.
  bool step_with_optimizer = true;
  /// Steps of the scheduler for each step of the optimizer: the number of processes, or 1 with split batches.
  int steps = 1;

  /// The number of steps that the current call makes.
  int steps_due() const;
};

}  // namespace detail

/// A scheduler as Accelerator::prepare returns it; call step() once for each batch. As accelerate 1.15's
/// AcceleratedScheduler it steps only when the optimizer does, once for each process, and never past the end
/// of its schedule. Copies share one scheduler.
template <class Native>
class AcceleratedScheduler {
 public:
  AcceleratedScheduler(std::shared_ptr<Native> native, detail::SchedulerRule rule)
      : native_(std::move(native)), rule_(std::move(rule)) {}

  /// Passes `arguments` to the scheduler's own step.
  template <class... Arguments>
  void step(const Arguments&... arguments) {
    for (int left = rule_.steps_due(); left > 0; --left) {
      if (rule_.step_with_optimizer && at_end()) return;
      native_->step(arguments...);
    }
  }

  /// Accesses the wrapped scheduler, as in `scheduler->last_lr()`.
  Native* operator->() const { return native_.get(); }
  const std::shared_ptr<Native>& native() const { return native_; }  ///< The scheduler that was prepared.

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
  detail::SchedulerRule rule_;
};

namespace detail {

/// Throws Error{usage} when the optimizer of a LibTorch scheduler was moved, as into Accelerator::prepare:
/// LibTorch's schedulers keep a reference to it that cannot be changed.
void require_optimizer(const torch::optim::LRScheduler& scheduler);

/// The state of a LibTorch scheduler as a JSON object, without its optimizer's learning rates.
std::string scheduler_state(const torch::optim::LRScheduler& scheduler);

/// Restores `state`. Throws Error{config} for any other text.
void load_scheduler_state(torch::optim::LRScheduler& scheduler, std::string_view state);

}  // namespace detail

}  // namespace acc
