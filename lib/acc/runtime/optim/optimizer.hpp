// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ATen/core/Tensor.h>

#include <functional>
#include <memory>

namespace torch::optim {
class Optimizer;
}

namespace acc {

class GradientState;
class GradScaler;
class StepChecks;

/// A LibTorch optimizer as Accelerator::prepare gives it back. Copies are the same optimizer.
class Optimizer {
 public:
  /// Computes the loss anew, as LBFGS asks for.
  using Closure = std::function<at::Tensor()>;

  /// One that steps on every call.
  explicit Optimizer(std::shared_ptr<torch::optim::Optimizer> native);

  /// One that steps when `gradients` says so and, with a `scaler`, when its gradients are finite; on several
  /// processes with `checks`.
  Optimizer(std::shared_ptr<torch::optim::Optimizer> native, std::shared_ptr<const GradientState> gradients,
            std::shared_ptr<GradScaler> scaler, std::shared_ptr<const StepChecks> checks = {});

  /// Changes the parameters by their gradients, which are the same on all processes; nothing while gradients
  /// accumulate. Gives back what LibTorch's step does: the closure's loss. Throws Error{usage} for a closure
  /// in fp16, what GradScaler throws, and what StepChecks finds.
  at::Tensor step(const Closure& closure = {});

  /// Forgets the gradients; nothing while they accumulate. Unlike LibTorch's own, also where they live in the
  /// buckets of data parallelism.
  void zero_grad();

  /// Whether the last step was left out because gradients overflowed in fp16.
  bool step_was_skipped() const;

  /// LibTorch's object, for schedulers, options and state.
  torch::optim::Optimizer& native() const;

  bool operator==(const Optimizer&) const = default;

 private:
  struct State;
  std::shared_ptr<State> state_;
};

}  // namespace acc
