// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>

#include "acc/runtime/parallel/ddp.hpp"
#include "acc/runtime/parallel/model.hpp"

namespace acc {

/// Local SGD, as accelerate's: while it lives, each process trains its own copy of the model without talking
/// to the others, and every so many steps the copies' parameters are averaged. Without effect for a model of
/// one process.
class LocalSGD {
 public:
  /// Averages after every `local_sgd_steps` calls of step(). Throws Error{usage} when that is below 1.
  template <class Module>
  LocalSGD(const Model<Module>& model, int local_sgd_steps, bool enabled = true)
      : LocalSGD(enabled ? model.ddp() : nullptr, local_sgd_steps) {}
  LocalSGD(std::shared_ptr<DdpReplica> ddp, int local_sgd_steps);

  /// Averages once more, unless an exception is on its way; gradients are then averaged again. Throws
  /// Error{system} when another process is lost.
  ~LocalSGD() noexcept(false);
  LocalSGD(const LocalSGD&) = delete;
  LocalSGD& operator=(const LocalSGD&) = delete;

  /// Together: to be called after each step of the optimizer.
  void step();

 private:
  std::shared_ptr<DdpReplica> ddp_;
  NoSync no_sync_;
  int local_sgd_steps_;
  int num_steps_ = 0;
  int exceptions_before_;
};

}  // namespace acc
