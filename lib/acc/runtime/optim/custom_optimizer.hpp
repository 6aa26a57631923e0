// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <torch/optim/optimizer.h>

#include <memory>
#include <utility>
#include <vector>

namespace acc::detail {

/// An optimizer that LibTorch does not have. In LibTorch 2.15 the options of a group count only where the
/// optimizer is one of its own; here a group with options has them in each version, unless it is added
/// through a torch::optim::Optimizer&, whose add_param_group is not virtual.
class CustomOptimizer : public torch::optim::Optimizer {
 public:
  void add_param_group(const torch::optim::OptimizerParamGroup& group) {
    Optimizer::add_param_group(group);
    if (group.has_options()) param_groups_.back().set_options(group.options().clone());
  }

 protected:
  CustomOptimizer(const std::vector<torch::optim::OptimizerParamGroup>& groups,
                  std::unique_ptr<torch::optim::OptimizerOptions> defaults)
      : Optimizer(std::vector<torch::optim::OptimizerParamGroup>(), std::move(defaults)) {
    for (const auto& group : groups) add_param_group(group);
  }
};

}  // namespace acc::detail
