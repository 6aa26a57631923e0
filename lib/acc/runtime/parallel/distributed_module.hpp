// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ATen/core/Tensor.h>

#include <memory>
#include <utility>
#include <vector>

#include "acc/runtime/tensors/nested_tensors.hpp"

namespace torch::optim {
class Optimizer;
}

namespace acc {

namespace detail {

/// A module that all processes train together, each with its own batches: replicated (DdpReplica) or sharded
/// (ShardedModule). Ddp and Model call it; it does not know the module's type. All processes must call every
/// function, in the same order.
class DistributedModule {
 public:
  DistributedModule() = default;
  virtual ~DistributedModule() = default;
  DistributedModule(const DistributedModule&) = delete;
  DistributedModule& operator=(const DistributedModule&) = delete;

  /// Calls `forward`, one pass through the module, and returns its output. Throws Error{usage} within
  /// acc::checkpoint, whose second pass would average again, and what before_forward and after_forward of the
  /// class throw.
  template <class Forward>
  auto run_forward(Forward forward) {
    require_outside_checkpoint();
    before_forward();
    auto output = [&] {
      try {
        return forward();
      } catch (...) {
        abandon_forward();
        throw;
      }
    }();
    std::vector<at::Tensor*> tensors;
    for_each_tensor(output, [&](at::Tensor& tensor) { tensors.push_back(&tensor); });
    after_forward(tensors);
    return output;
  }

  /// Whether gradients are averaged over the processes; if not, each process accumulates its own.
  virtual bool synchronizes() const = 0;
  virtual void set_synchronizes(bool on) = 0;

  /// Turns averaging off until end_no_sync was called as often, whichever of the callers ends first.
  void begin_no_sync() {
    if (no_syncs_++ == 0) synchronized_before_ = synchronizes();
    set_synchronizes(false);
  }
  void end_no_sync() {
    if (--no_syncs_ == 0) set_synchronizes(synchronized_before_);
  }

  /// Makes the next backward average gradients although set_synchronizes was off in its forward. Throws
  /// Error{usage} where forward must know that.
  virtual void synchronize_next_backward() = 0;

  /// Whether gradients are averaged in every batch, also in those that do not end with a step.
  virtual bool averages_every_batch() const = 0;

  /// To be called after each backward, and before gradients are used: all of them are averaged when it
  /// returns. Throws Error{usage} when some were not, neither by this module nor by another of `models`,
  /// those that are trained together, to which the parameter also belongs.
  virtual void after_backward(const std::vector<std::shared_ptr<DistributedModule>>& models) = 0;

  /// Whether the last gradient of `parameter` was averaged by this module, or was to stay on this process.
  virtual bool expected_gradient(const at::Tensor& parameter) const = 0;

  /// Whether some parameters have got gradients since the last forward and others have not, so that none of
  /// them is averaged yet.
  virtual bool awaits_gradients() const = 0;
  /// Throws Error{usage} naming the parameters whose gradients it awaits.
  virtual void require_gradients() = 0;

  /// To be called after each step of an optimizer.
  virtual void after_step() = 0;

  /// To be called before the gradients of an optimizer's parameters are reset: drops what this module keeps
  /// of them elsewhere, to be averaged later.
  virtual void drop_gradients(const torch::optim::Optimizer& optimizer) = 0;

  /// Whether a step of an optimizer may update `parameter`, since its gradient is averaged.
  virtual bool has_parameter(const at::Tensor& parameter) const = 0;

  /// Whether all processes have the same parameters at the end of a step.
  virtual bool in_step() const = 0;

  /// Throws the same Error{usage} on every rank, naming the parameter and the ranks, when the value of a
  /// parameter is not bit-identical on all processes that hold it.
  virtual void require_equal_parameters() = 0;

  /// The type of the parameters in forward.
  virtual at::ScalarType compute_type() const = 0;

 private:
  static void require_outside_checkpoint();
  virtual void before_forward() = 0;
  // `outputs` points to the tensors in the output of forward, which may be replaced.
  virtual void after_forward(const std::vector<at::Tensor*>& outputs) = 0;
  // Called instead when forward throws.
  virtual void abandon_forward() noexcept = 0;

  int no_syncs_ = 0;
  bool synchronized_before_ = true;
};

}  // namespace detail

/// While this object exists, gradients are accumulated on this process only and are not averaged; it must
/// cover forward and backward. Of several, gradients are averaged again when the last one ends. For all but
/// the last of the batches over which gradients are accumulated.
class NoSync {
 public:
  explicit NoSync(std::shared_ptr<detail::DistributedModule> module) : module_(std::move(module)) {
    if (module_) module_->begin_no_sync();
  }
  ~NoSync() {
    if (module_) module_->end_no_sync();
  }
  NoSync(const NoSync&) = delete;
  NoSync& operator=(const NoSync&) = delete;

 private:
  std::shared_ptr<detail::DistributedModule> module_;
};

}  // namespace acc
