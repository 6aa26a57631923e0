// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ATen/core/Tensor.h>

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <unordered_set>
#include <utility>
#include <vector>

#include "acc/runtime/comm/process_group.hpp"
#include "acc/runtime/parallel/distributed_module.hpp"
#include "acc/runtime/sharded/fsdp_options.hpp"

namespace torch::nn {
class Module;
}
namespace torch::optim {
class Optimizer;
}

namespace acc::detail {

class Unit;

/// How a ShardedModule computes.
struct ShardedModuleOptions {
  FsdpOptions fsdp = {};
  /// The type of the parameters in forward: float32 or bfloat16.
  at::ScalarType compute = at::kFloat;
  at::Device device = at::kCPU;
  /// Broadcasts rank 0's buffers before each forward, as DdpOptions::broadcast_buffers.
  bool broadcast_buffers = true;
};

/// A module whose parameters (stage 3), gradients and optimizer states are divided among the processes.
///
/// Its parameters are in units (plan_units). An operator that uses a parameter of a freed unit, or a view of
/// one, gathers the unit first (watch_operators), and frees those that were used before; the order of the
/// last pass tells which unit to gather ahead. When the gradients of a unit are there, they are averaged
/// while backward goes on (GradientReduction). The optimizer has the processes' shards as parameters
/// (ShardedOptimizer).
class ShardedModule final : public DistributedModule {
 public:
  /// Together: takes rank 0's parameters and buffers. Throws Error{usage} on every rank as DdpReplica does,
  /// and what plan_units throws.
  ShardedModule(std::shared_ptr<torch::nn::Module> module, std::shared_ptr<ProcessGroup> group,
                ShardedModuleOptions options);
  ~ShardedModule() override;

  bool synchronizes() const override;
  void set_synchronizes(bool on) override;
  void synchronize_next_backward() override;
  /// True: otherwise each process would need memory for the gradients of the whole model.
  bool averages_every_batch() const override { return true; }
  void after_backward(const std::vector<std::shared_ptr<DistributedModule>>& models) override;
  /// False: no other module may have its parameters.
  bool expected_gradient(const at::Tensor& /*parameter*/) const override { return false; }
  /// False: a parameter without a gradient keeps the others from nothing.
  bool awaits_gradients() const override { return false; }
  void require_gradients() override {}
  void after_step() override;
  /// Also ends a backward that threw.
  void drop_gradients(const torch::optim::Optimizer& optimizer) override;
  /// Whether it is a part of a shard that an optimizer got from this module, see ShardedOptimizer, or belongs
  /// to an ignored module, and so is frozen.
  bool has_parameter(const at::Tensor& parameter) const override;
  bool in_step() const override;
  /// Compares what each process has whole: parameters of ignored modules, and in stage 2 all.
  void require_equal_parameters() override;
  at::ScalarType compute_type() const override;

  const std::vector<std::unique_ptr<Unit>>& units() const;
  ProcessGroup& group() const;
  const torch::nn::Module& module() const;

  /// Tells the module that an optimizer trains these pieces of its units, and has these parts of its shards.
  void add_optimizer(const torch::optim::Optimizer& optimizer,
                     const std::vector<std::pair<const Unit*, std::size_t>>& pieces,
                     const std::vector<at::Tensor>& parts);

  /// Together: gathers all units, until release_all is called as often. What the program changes in them is
  /// taken over before they are used: by a forward, a step of the optimizer, a save or release_all. A step
  /// gathers them again.
  void gather_all();
  /// Frees the units, unless they are in use otherwise.
  void release_all();

  /// The bytes of the gathered parameters at their peak since the last call, for units that are freed.
  std::size_t take_peak_bytes();

 private:
  void before_forward() override;
  void after_forward(const std::vector<at::Tensor*>& outputs) override;
  void abandon_forward() noexcept override;

  struct Impl;
  std::shared_ptr<Impl> impl_;
};

}  // namespace acc::detail
