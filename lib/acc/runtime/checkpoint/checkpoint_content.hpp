// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "acc/runtime/checkpoint/stateful.hpp"

namespace torch::nn {
class Module;
}
namespace torch::optim {
class Optimizer;
}

namespace acc {

class ProcessGroup;

namespace detail {
class ShardedOptimizer;
}

/// The content of a checkpoint. Objects of one kind are in the order in which they were prepared.
struct CheckpointContent {
  std::vector<torch::nn::Module*> models = {};            ///< Their parameters and buffers.
  std::vector<torch::optim::Optimizer*> optimizers = {};  ///< Their states and options.
  /// For each of `optimizers`, or empty: what it has of sharded models, or null.
  std::vector<std::shared_ptr<detail::ShardedOptimizer>> sharded_optimizers = {};
  std::vector<Stateful> schedulers = {};  ///< Their positions.
  std::vector<Stateful> loaders = {};     ///< Their positions.
  std::optional<Stateful> scaler = {};    ///< The state of fp16's scale.
  std::vector<Stateful> registered = {};  ///< The program's own objects.
  /// The gradient buckets of the models: the last bit of summed gradients depends on them. None for a model
  /// whose gradients are not averaged, or have not been averaged yet.
  std::vector<Stateful> gradient_buckets = {};
  /// The step of the gradient accumulation.
  std::int64_t step = 0;
  /// For each of `optimizers` the rates of its groups before its scheduler changed them, as
  /// torch.optim.lr_scheduler keeps them there; empty for an optimizer without, or if there are none.
  std::vector<std::vector<double>> initial_rates = {};
  /// The processes that load at the same time, since their models are sharded; null: each loads by itself.
  std::shared_ptr<ProcessGroup> loading_group = {};
  /// Whether gradients have been accumulated for a step that has not happened yet; each process saves its
  /// own.
  bool accumulates = false;
  int num_processes = 1;  ///< The processes that save.

  /// The entry of sharded_optimizers, if any.
  std::shared_ptr<detail::ShardedOptimizer> sharded(std::size_t optimizer) const {
    return optimizer < sharded_optimizers.size() ? sharded_optimizers[optimizer] : nullptr;
  }
};

}  // namespace acc
