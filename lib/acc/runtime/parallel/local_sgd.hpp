// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <utility>

#include "acc/runtime/parallel/ddp.hpp"
#include "acc/runtime/parallel/model.hpp"

namespace acc {

/// Counts steps and averages parameters; passed to the function that local_sgd calls.
class LocalSGD {
 public:
  /// Averages after every `local_sgd_steps` calls of step(); does nothing when `ddp` is null. Throws
  /// Error{usage} when `local_sgd_steps` is below 1.
  LocalSGD(std::shared_ptr<detail::DdpReplica> ddp, int local_sgd_steps);

  /// Together: to be called after each step of the optimizer.
  void step();

  /// Together: replaces the parameters of all processes by their mean.
  void average();

 private:
  std::shared_ptr<detail::DdpReplica> ddp_;
  int local_sgd_steps_;
  int num_steps_ = 0;
};

/// Local SGD, as accelerate's LocalSGD: calls `train` with a LocalSGD, whose step() it must call. During the
/// call each process trains its own copy of the model without communication; the parameters are averaged
/// after every `local_sgd_steps` steps, and when `train` returns. An exception of `train` passes through at
/// once, without averaging. Afterwards gradients are averaged again; the optimizer's state and the scale of
/// fp16 stay what they are on each process, as in Python: the next steps may differ where they depend on
/// them, as with momentum. If `enabled` is false or there is one process, it just calls `train`. Throws
/// Error{usage} when `local_sgd_steps` is below 1 or the model is sharded, Error{system} when another process
/// is lost.
template <class Module, class Train>
void local_sgd(const Model<Module>& model, int local_sgd_steps, bool enabled, Train train) {
  const auto ddp = enabled ? detail::require_replica(model.distributed(), "local_sgd") : nullptr;
  LocalSGD averaging(ddp, local_sgd_steps);
  const NoSync no_sync(ddp);
  train(averaging);
  averaging.average();
}
template <class Module, class Train>
void local_sgd(const Model<Module>& model, int local_sgd_steps, Train train) {
  local_sgd(model, local_sgd_steps, /*enabled=*/true, std::move(train));
}

}  // namespace acc
