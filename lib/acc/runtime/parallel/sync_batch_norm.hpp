// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ATen/core/Tensor.h>

#include <memory>
#include <string_view>

namespace torch::nn {
class Module;
}

namespace acc {

class ProcessGroup;

/// Makes every BatchNorm1d, 2d and 3d in `module` use the mean and variance over the batches of all processes
/// in training mode, as Python's SyncBatchNorm; also on the CPU. Objects and types of the modules do not
/// change. Takes effect when the module is prepared on several processes; with one process, and in eval(),
/// nothing changes. Copies made by clone() are not converted. Each process needs more than one value per
/// channel, or none. Throws Error{usage} naming a batch norm that has neither weights nor running statistics:
/// it could not be distinguished from others.
void convert_sync_batchnorm(torch::nn::Module& module);

namespace detail {

/// The arguments of a batch norm beside its input. Tensors may be undefined.
struct BatchNormTensors {
  at::Tensor weight = {};
  at::Tensor bias = {};
  /// Updated in place.
  at::Tensor running_mean = {};
  at::Tensor running_var = {};
  double momentum = 0.1;
  double eps = 1e-5;
};

/// Together: batch norm, in training mode, over the concatenated batches of all processes. `input` and the
/// result are this process's part [N, C, ...]; N may differ, and be 0. Supports first derivatives only. The
/// input's gradient takes the whole batch into account; those of weight and bias are this process's
/// contribution.
at::Tensor global_batch_norm(const at::Tensor& input, const BatchNormTensors& tensors,
                             const std::shared_ptr<ProcessGroup>& group);

/// Makes the converted batch norms of `module` use `group`.
void use_group_in_sync_batch_norms(const torch::nn::Module& module,
                                   const std::shared_ptr<ProcessGroup>& group);

/// Throws Error{usage} naming a converted batch norm of `module` that is in training: a process that does not
/// call its forward would let the others wait.
void require_no_sync_batch_norms(const torch::nn::Module& module, std::string_view function);

}  // namespace detail

}  // namespace acc
