// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <utility>

namespace torch::optim {
class Optimizer;
}

namespace acc {

/// A LibTorch optimizer as Accelerator::prepare gives it back.
class Optimizer {
 public:
  explicit Optimizer(std::shared_ptr<torch::optim::Optimizer> native) : native_(std::move(native)) {}

  /// Changes the parameters by their gradients, which are the same on all processes.
  void step();

  /// Forgets the gradients. Unlike LibTorch's own, also where they live in the buckets of data parallelism.
  void zero_grad();

  /// LibTorch's object, for schedulers, options and state.
  torch::optim::Optimizer& native() const { return *native_; }

 private:
  std::shared_ptr<torch::optim::Optimizer> native_;
};

}  // namespace acc
