// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ATen/core/Tensor.h>

#include <cstddef>
#include <memory>
#include <optional>
#include <string_view>
#include <utility>
#include <vector>

#include "acc/runtime/comm/process_group.hpp"
#include "acc/runtime/parallel/distributed_module.hpp"

namespace torch::nn {
class Module;
}

namespace acc {

namespace detail {

/// The buckets: the indices of the trained parameters whose gradients are averaged in one message, in order.
using BucketLayout = std::vector<std::vector<std::size_t>>;

}  // namespace detail

/// How gradients are sent: unchanged, or compressed to half the size, as Python's fp16_compress_hook and
/// bf16_compress_hook do (each process first divides its gradients by the number of processes).
enum class CommHook { none, fp16, bf16 };

/// The options of Python's DistributedDataParallel, with its defaults.
struct DdpOptions {
  /// The size in MiB of the buckets in which gradients are averaged while backward still runs. Default: 25,
  /// and 1 for the first bucket.
  std::optional<double> bucket_cap_mb = {};
  /// Broadcasts rank 0's buffers, such as the running means of batch norms, before each forward.
  bool broadcast_buffers = true;
  /// Makes gradients views of the buckets, which saves a copy of the gradients.
  bool gradient_as_bucket_view = false;
  /// Finds, in each forward, the parameters on which the output does not depend, and does not wait for their
  /// gradients. Traverses the graph in each step: use it only for models with such parameters.
  bool find_unused_parameters = false;
  /// Promises that each step uses the same parameters in the same way. Unused parameters are then found once,
  /// in the first step, and a parameter may be used several times in one backward (activation checkpointing).
  bool static_graph = false;
  CommHook comm_hook = CommHook::none;  ///< How gradients are sent.
};

namespace detail {

struct JoinedStep;

/// This process's replica of a module that all processes train together. Averages gradients while backward
/// runs, as Python's DistributedDataParallel and with the same numbers. Ddp and Model call it; it does not
/// know the module's type. All processes must call every function, in the same order.
class DdpReplica final : public DistributedModule {
 public:
  /// Broadcasts rank 0's parameters and buffers. Throws Error{usage} on every rank, naming the first
  /// parameter whose name, shape or type is not the same on all ranks, and when no parameter requires a
  /// gradient.
  DdpReplica(std::shared_ptr<torch::nn::Module> module, std::shared_ptr<ProcessGroup> group,
             DdpOptions options = {});
  ~DdpReplica() override;

  // Of run_forward: parameters may have been frozen or unfrozen since the last pass. It throws Error{usage}
  // naming the parameters that got no gradient in the step before; on every rank when the ranks have frozen
  // different parameters; and when find_unused_parameters finds no tensors in the output.

  bool synchronizes() const override;
  void set_synchronizes(bool on) override;
  /// Throws Error{usage} with find_unused_parameters or static_graph, which require it to be on in forward,
  /// and in join_uneven_inputs.
  void synchronize_next_backward() override;
  bool averages_every_batch() const override { return false; }

  /// Throws Error{usage} when, since the last call, the module received gradients that no run_forward had
  /// announced, and which were not averaged.
  void after_backward(const std::vector<std::shared_ptr<DistributedModule>>& models) override;
  bool expected_gradient(const at::Tensor& parameter) const override;
  bool awaits_gradients() const override;
  void require_gradients() override;
  void after_step() override {}
  /// Does nothing: all of them are in the parameters.
  void drop_gradients(const torch::optim::Optimizer& /*optimizer*/) override {}

  /// Whether `parameter` was one of the module's parameters when this replica was constructed.
  bool has_parameter(const at::Tensor& parameter) const override;

  /// Whether all processes have the same parameters at the end of a step: not while each trains alone
  /// (no_sync, local_sgd) or some have run out of data (join_uneven_inputs).
  bool in_step() const override;
  void require_equal_parameters() override;
  at::ScalarType compute_type() const override { return at::kFloat; }

  /// The buckets after the first step, see GradientReducer; empty before it. settle_bucket_layout makes the
  /// layout final at once; otherwise the second step does. Together.
  BucketLayout bucket_layout() const;
  void settle_bucket_layout();
  /// Continues with the layout of an earlier run. A layout that does not fit the module is ignored.
  void set_bucket_layout(const BucketLayout& layout);

  ProcessGroup& group() const;

  /// The device of the parameters.
  at::Device device() const;

  /// For local_sgd: replaces the parameters by their mean over all processes.
  void average_parameters();

  /// Throws Error{usage} naming a trained parameter that also belongs to `other`, which `function` cannot
  /// average.
  void require_apart_from(const DdpReplica& other, std::string_view function) const;

  /// Throws Error{usage} naming a parameter that also belongs to `other` and has sparse gradients in one of
  /// the two.
  void require_no_sparse_gradients_shared_with(const DdpReplica& other) const;

  /// For join_uneven_inputs: from now on each forward notifies the processes that have run out of data that a
  /// step begins. With several modules, the first one notifies them, through the JoinedStep that all share.
  /// Null ends this.
  void set_join(std::shared_ptr<JoinedStep> step);

  /// For join_uneven_inputs: takes part in one step of the other processes with gradients of zero, since this
  /// process has no data left.
  void shadow_step();

  /// For join_uneven_inputs: broadcasts parameters and buffers from a process that was among the last with
  /// data.
  void finish_join(bool was_last);

 private:
  struct Impl;

  void before_forward() override;
  void after_forward(const std::vector<at::Tensor*>& outputs) override;
  void abandon_forward() noexcept override {}

  std::shared_ptr<Impl> impl_;
};

/// The replica; null for null. Throws Error{usage} for a sharded module, naming `function`, which needs whole
/// models.
std::shared_ptr<DdpReplica> require_replica(const std::shared_ptr<DistributedModule>& module,
                                            std::string_view function);

}  // namespace detail

/// Python's DistributedDataParallel: it is called like the module that it wraps, and backward then averages
/// the gradients over all processes of the group. `ddp->` accesses the module itself: train(), eval(),
/// parameters(). Accelerator::prepare returns a Model instead, which also applies the chosen precision.
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
  const std::shared_ptr<Module>& module() const { return module_; }  ///< The module that it wraps.
  /// What averages its gradients.
  const std::shared_ptr<detail::DdpReplica>& replica() const { return replica_; }

  /// While the result exists, gradients are accumulated on this process only.
  [[nodiscard]] NoSync no_sync() const { return NoSync(replica_); }

 private:
  std::shared_ptr<Module> module_;
  std::shared_ptr<detail::DdpReplica> replica_;
};

}  // namespace acc
