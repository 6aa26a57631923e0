// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ATen/core/Tensor.h>
#include <c10/core/Device.h>

#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

namespace torch::optim {
class Optimizer;
}

namespace acc {

class GradientState;
class GradScaler;

namespace detail {

class DistributedModule;

struct StepCheckOptions {
  /// Allows optimizers to have parameters that do not belong to a prepared model.
  bool allow_unprepared_parameters = false;
  /// Compares the models' values across the processes after this many steps of an optimizer; 0: never.
  int check_parameters_every = 0;
};

/// An Accelerator's checks around the steps of its optimizers that detect when the processes' models diverge.
class StepChecks {
 public:
  explicit StepChecks(StepCheckOptions options) : options_(options) {}

  void add_model(std::shared_ptr<DistributedModule> model) { models_.push_back(std::move(model)); }

  /// Releases the models and ends all checks.
  void release() {
    models_.clear();
    options_ = {.allow_unprepared_parameters = true};
  }

  /// Throws Error{usage} when the optimizer has parameters whose gradients are not averaged, and sharded ones
  /// in a group that was added after it was prepared.
  void require_prepared(const torch::optim::Optimizer& optimizer) const;

  /// To be called after each backward and before each step, see DistributedModule::after_backward. Throws
  /// Error{usage} when gradients that were not averaged reached a model.
  void after_backward() const;

  /// Throws Error{usage} when a model of some of the optimizer's parameters still awaits gradients.
  void require_gradients(const torch::optim::Optimizer& optimizer) const;

  /// Together: throws Error{usage} when a model's values are not the same on all processes.
  void require_equal_parameters() const;

  /// To be called before the gradients of an optimizer's parameters are reset.
  void drop_gradients(const torch::optim::Optimizer& optimizer) const;

  /// Together: to be called after step number `steps` of an optimizer; compares parameters when that is due.
  void after_step(std::int64_t steps) const;

 private:
  StepCheckOptions options_;
  std::vector<std::shared_ptr<DistributedModule>> models_ = {};
};

}  // namespace detail

/// A LibTorch optimizer as Accelerator::prepare returns it. Copies share one optimizer.
class Optimizer {
 public:
  /// Recomputes the loss and its gradients, as LBFGS requires.
  using Closure = std::function<at::Tensor()>;

  /// An optimizer that steps on every call.
  explicit Optimizer(std::shared_ptr<torch::optim::Optimizer> native);

  /// An optimizer that steps only when gradients are complete according to `gradients` and, with a `scaler`,
  /// when they are finite. `checks` are made around each step.
  Optimizer(std::shared_ptr<torch::optim::Optimizer> native, std::shared_ptr<const GradientState> gradients,
            std::shared_ptr<GradScaler> scaler, std::shared_ptr<const detail::StepChecks> checks = {});

  /// Updates the parameters with their gradients, which are the same on all processes; does nothing while
  /// gradients accumulate. On CUDA devices, without a closure, SGD, Adam and AdamW use LibTorch's fused
  /// kernels, whose numbers are those of LibTorch's own step up to rounding. Returns the closure's loss, as
  /// LibTorch's step. Throws Error{usage} for a closure in fp16, and what GradScaler and the checks throw.
  at::Tensor step(const Closure& closure = {});

  /// Resets the gradients; does nothing while they accumulate. Unlike LibTorch's zero_grad, it also resets
  /// gradients that are views of DDP's buckets, and those of a sharded model that are not averaged yet, after
  /// no_sync or a backward that threw; not if it is called within a backward, in a hook. A step does not use
  /// those: the last batch before it must be outside of no_sync.
  void zero_grad();

  /// Whether the last step was skipped because gradients overflowed in fp16.
  bool step_was_skipped() const;

  /// The wrapped LibTorch optimizer, for schedulers, options and state.
  torch::optim::Optimizer& native() const;

  bool operator==(const Optimizer&) const = default;

 private:
  struct State;
  std::shared_ptr<State> state_;
};

namespace detail {

/// Moves the state of LibTorch's optimizers, such as momentum, to `device`. The state of other optimizers is
/// not moved.
void move_optimizer_state(torch::optim::Optimizer& optimizer, c10::Device device);

}  // namespace detail

}  // namespace acc
