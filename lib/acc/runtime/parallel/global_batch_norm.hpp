// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ATen/core/Tensor.h>

#include <memory>

namespace acc {

class ProcessGroup;

/// What a batch norm has beside its input; all but the numbers may be undefined.
struct BatchNormTensors {
  at::Tensor weight = {};
  at::Tensor bias = {};
  /// Changed in place.
  at::Tensor running_mean = {};
  at::Tensor running_var = {};
  double momentum = 0.1;
  double eps = 1e-5;
};

/// Together: the batch norm in training of the batches of all processes, each of which gets and gives its own
/// part, [N, C, ...]; N may differ, and be 0. Differentiable once: the gradient of the input is that of the
/// whole batch, and those of weight and bias are this process's share of it.
at::Tensor global_batch_norm(const at::Tensor& input, const BatchNormTensors& tensors,
                             const std::shared_ptr<ProcessGroup>& group);

}  // namespace acc
