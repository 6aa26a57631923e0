// SPDX-License-Identifier: Apache-2.0
#include "acc/runtime/optim/optimizer.hpp"

#include <torch/optim/optimizer.h>

namespace acc {

void Optimizer::step() {
  native_->step();
}

void Optimizer::zero_grad() {
  for (auto& group : native_->param_groups()) {
    for (at::Tensor& parameter : group.params()) parameter.mutable_grad().reset();
  }
}

}  // namespace acc
