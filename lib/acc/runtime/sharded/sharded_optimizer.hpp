// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ATen/core/Tensor.h>

#include <cstddef>
#include <memory>
#include <vector>

namespace torch::optim {
class Optimizer;
}

namespace acc::detail {

class ShardedModule;
class Unit;

/// An optimizer of sharded modules: its parameters are replaced by the parts of this process's shards, as
/// one-dimensional float32 tensors. SGD, Adam, AdamW, RMSprop and Adagrad treat all elements alike.
class ShardedOptimizer {
 public:
  /// A parameter that the optimizer was given.
  struct Parameter {
    /// Null if it is not sharded.
    Unit* unit = nullptr;
    std::size_t piece = 0;
    /// If it is not sharded.
    at::Tensor tensor = {};
  };

  /// Replaces the parameters of `optimizer` that belong to `modules`, in their groups. Throws Error{usage}
  /// for an optimizer of another kind, and one that has stepped already.
  ShardedOptimizer(torch::optim::Optimizer& optimizer,
                   const std::vector<std::shared_ptr<ShardedModule>>& modules);

  torch::optim::Optimizer& native() const { return native_; }
  /// The parameters that it was given, group by group, in their order.
  const std::vector<std::vector<Parameter>>& groups() const { return groups_; }
  const std::vector<std::shared_ptr<ShardedModule>>& modules() const { return modules_; }

 private:
  torch::optim::Optimizer& native_;
  std::vector<std::shared_ptr<ShardedModule>> modules_ = {};
  std::vector<std::vector<Parameter>> groups_ = {};
};

/// Whether an optimizer has parameters that belong to a sharded module, or to this one.
bool has_sharded_parameters(const torch::optim::Optimizer& optimizer);
bool has_parameters_of(const torch::optim::Optimizer& optimizer, const ShardedModule& module);

}  // namespace acc::detail
