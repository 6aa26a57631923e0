// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ATen/core/Tensor.h>

#include <memory>

namespace torch::nn {
class Module;
}

namespace acc {

class ProcessGroup;

/// From now on every BatchNorm1d, 2d and 3d in `module` uses the mean and variance of all processes' batches
/// together while it trains, as Python's SyncBatchNorm; also on the CPU. The modules stay the same objects of
/// the same type, wherever the program holds them. It takes effect when the module is prepared for several
/// processes; with one, and in eval(), nothing changes. Copies made by clone() are plain again.
/// Each process needs more than one value per channel, or none.
/// Throws Error{usage} naming a batch norm that has neither weights nor running statistics: LibTorch calls
/// such a one in a way that does not tell it from others.
void convert_sync_batchnorm(torch::nn::Module& module);

namespace detail {

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

/// The converted batch norms of `module` use `group` from now on.
void use_group_in_sync_batch_norms(const torch::nn::Module& module,
                                   const std::shared_ptr<ProcessGroup>& group);

}  // namespace detail

}  // namespace acc
