// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <torch/nn/modules/linear.h>
#include <torch/optim/optimizer.h>

#include <memory>
#include <utility>

#include "acc/runtime/comm/process_group.hpp"
#include "acc/runtime/sharded/sharded_module.hpp"
#include "acc/runtime/sharded/sharded_optimizer.hpp"
#include "acc/runtime/sharded/unit.hpp"
#include "support/lone_group.hpp"

namespace acc::test {

/// A linear layer that this process alone shards, and an optimizer of its parts.
template <class Optimizer>
struct LoneShards {
  template <class Options>
  LoneShards(torch::nn::Linear linear, const Options& options)
      : net(std::move(linear)), native(net->parameters(), options) {}
  LoneShards(const LoneShards&) = delete;
  LoneShards& operator=(const LoneShards&) = delete;

  /// The part of parameter `piece` that the optimizer has.
  const at::Tensor& part(std::size_t piece) {
    return module->units().front()->trained_parts().at(piece).values;
  }

  torch::nn::Linear net;
  std::shared_ptr<ProcessGroup> group = lone_group();
  Optimizer native;
  std::shared_ptr<detail::ShardedModule> module =
      std::make_shared<detail::ShardedModule>(net.ptr(), group, detail::ShardedModuleOptions{});
  detail::ShardedOptimizer optimizer{native, {module}};
};

}  // namespace acc::test
