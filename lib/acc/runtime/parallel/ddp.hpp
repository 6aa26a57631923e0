// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ATen/core/Tensor.h>

#include <cstddef>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "acc/runtime/nested_tensors.hpp"
#include "acc/runtime/parallel/process_group.hpp"

namespace torch::nn {
class Module;
}

namespace acc {

namespace detail {

/// Which of the trained parameters, by index, have their gradients averaged in one message, and in which
/// order.
using BucketLayout = std::vector<std::vector<std::size_t>>;

}  // namespace detail

/// How gradients are sent: as they are, or compressed to half the size (each process first divides its own by
/// the number of processes), as Python's fp16_compress_hook and bf16_compress_hook do.
enum class CommHook { none, fp16, bf16 };

/// Tuning of data parallelism; the defaults are those of Python's DistributedDataParallel.
struct DdpOptions {
  /// The size of the buckets in which gradients are averaged while backward still runs. Default: 25 with a
  /// first one of 1.
  std::optional<double> bucket_cap_mb = {};
  /// Rank 0's buffers (running means of batch norms) go to all before each forward.
  bool broadcast_buffers = true;
  /// Gradients live in the buckets: saves a copy of the gradients in memory and time.
  bool gradient_as_bucket_view = false;
  /// Looks in each forward for the parameters that its output does not depend on, and does not wait for
  /// their gradients. Costs a walk through the graph in each step: only for models with such parameters.
  bool find_unused_parameters = false;
  /// Each step uses the same parameters in the same way. The first step then finds the unused
  /// ones once and for all, and a parameter may be used several times in one backward (checkpointing).
  bool static_graph = false;
  CommHook comm_hook = CommHook::none;
};

namespace detail {

struct JoinedStep;

/// This process's copy of a module that all processes train together: averages gradients while backward runs,
/// as Python's DistributedDataParallel and with the same numbers. Knows the module without its type; Ddp and
/// Model call it. Every function is for all processes together.
class DdpReplica {
 public:
  /// Copies rank 0's parameters and buffers to all. Throws Error{usage} on every rank, naming the first
  /// parameter that is not the same (name, shape, type) everywhere, and when no parameter needs a gradient.
  DdpReplica(std::shared_ptr<torch::nn::Module> module, std::shared_ptr<ProcessGroup> group,
             DdpOptions options = {});
  ~DdpReplica();
  DdpReplica(const DdpReplica&) = delete;
  DdpReplica& operator=(const DdpReplica&) = delete;

  /// Calls `forward`, one pass through the module, and returns its output. Picks up parameters that were
  /// frozen or unfrozen since the last pass. Throws Error{usage} when the step before left parameters without
  /// a gradient, and names them; on every rank when they freeze different parameters; when
  /// find_unused_parameters finds no tensors in what `forward` returned.
  template <class Forward>
  auto run_forward(Forward forward) {
    before_forward();
    auto output = forward();
    std::vector<at::Tensor*> tensors;
    for_each_tensor(output, [&](at::Tensor& tensor) { tensors.push_back(&tensor); });
    after_forward(tensors);
    return output;
  }

  bool synchronizes() const;
  void set_synchronizes(bool on);

  /// The next backward averages gradients although set_synchronizes was off in its forward. Throws
  /// Error{usage} where that cannot be: with find_unused_parameters or static_graph, which have to see the
  /// forward, and in join_uneven_inputs.
  void synchronize_next_backward();

  /// Throws Error{usage} when gradients reached the module, since this was last asked, that no run_forward
  /// announced: they were not averaged.
  void require_announced_gradients();

  /// Whether `parameter` was one of the module's when this was made.
  bool has_parameter(const at::Tensor& parameter) const;

  /// Whether all processes have the same parameters at the end of a step: not while each trains alone
  /// (no_sync, local_sgd), nor while some have run out of data (join_uneven_inputs).
  bool in_step() const;

  /// Throws the same Error{usage} on every rank, naming the parameter and the ranks, when a parameter's value
  /// is not the same on all, bit for bit.
  void require_equal_parameters();

  /// How gradients are laid out in messages after the first step, see GradientReducer; empty before it.
  /// settle_bucket_layout, which is together, does at once what the second step would begin with.
  BucketLayout bucket_layout() const;
  void settle_bucket_layout();
  /// Goes on with the layout of an earlier run. One that does not fit the module is passed over.
  void set_bucket_layout(const BucketLayout& layout);

  ProcessGroup& group() const;

  /// Where the parameters are.
  at::Device device() const;

  /// For local_sgd: parameters become the mean of all processes'.
  void average_parameters();

  /// For join_uneven_inputs: from now on each forward notifies the processes that have run out of data that a
  /// step begins. The first of several modules does so, through the JoinedStep that they share; null ends it.
  void set_join(std::shared_ptr<JoinedStep> step);

  /// For join_uneven_inputs: this process, which has no data left, adds gradients of zero to one step of the
  /// others.
  void shadow_step();

  /// For join_uneven_inputs: takes parameters and buffers from a process that was among the last with data.
  void finish_join(bool was_last);

 private:
  struct Impl;

  void before_forward();
  // `outputs`: where the tensors that forward returned are; others may take their places.
  void after_forward(const std::vector<at::Tensor*>& outputs);

  std::shared_ptr<Impl> impl_;
};

}  // namespace detail

/// While it lives, backward adds up gradients on this process alone: for all but the last of the batches
/// whose gradients are accumulated. It covers forward and backward.
class NoSync {
 public:
  explicit NoSync(std::shared_ptr<detail::DdpReplica> ddp) : ddp_(std::move(ddp)) {
    if (!ddp_) return;
    was_on_ = ddp_->synchronizes();
    ddp_->set_synchronizes(false);
  }
  ~NoSync() {
    if (ddp_) ddp_->set_synchronizes(was_on_);
  }
  NoSync(const NoSync&) = delete;
  NoSync& operator=(const NoSync&) = delete;

 private:
  std::shared_ptr<detail::DdpReplica> ddp_;
  bool was_on_ = true;
};

/// Python's DistributedDataParallel: called like the module that it wraps, and backward then averages the
/// gradients over all processes of the group. `ddp->` reaches the module itself: train(), eval(),
/// parameters(). Accelerator::prepare makes a Model instead, which has the chosen precision as well.
template <class Module>
class Ddp {
 public:
  /// Together. Throws Error{usage}, see DdpReplica.
  Ddp(std::shared_ptr<Module> module, std::shared_ptr<ProcessGroup> group, DdpOptions options = {})
      : module_(std::move(module)),
        replica_(std::make_shared<detail::DdpReplica>(module_, std::move(group), options)) {}

  /// Together: the module's forward. Throws Error{usage}, see DdpReplica::run_forward.
  template <class... Arguments>
  auto forward(Arguments&&... arguments) {
    return replica_->run_forward([&] { return module_->forward(std::forward<Arguments>(arguments)...); });
  }

  template <class... Arguments>
  auto operator()(Arguments&&... arguments) {
    return forward(std::forward<Arguments>(arguments)...);
  }

  Module* operator->() const { return module_.get(); }
  const std::shared_ptr<Module>& module() const { return module_; }
  const std::shared_ptr<detail::DdpReplica>& replica() const { return replica_; }

  /// While the result lives, backward adds up gradients on this process alone.
  [[nodiscard]] NoSync no_sync() const { return NoSync(replica_); }

 private:
  std::shared_ptr<Module> module_;
  std::shared_ptr<detail::DdpReplica> replica_;
};

}  // namespace acc
