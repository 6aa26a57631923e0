// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ATen/core/Tensor.h>

#include <functional>

namespace torch::optim {
class Optimizer;
}  // namespace torch::optim

namespace acc::detail {

/// Does what `optimizer.step(closure)` does; on CUDA devices, without a closure, by step_fused() where it
/// can.
at::Tensor step_quickly(torch::optim::Optimizer& optimizer, const std::function<at::Tensor()>& closure = {});

/// A step of an SGD, Adam or AdamW by LibTorch's fused kernels: one call for all parameters of a type and
/// device, where LibTorch's own step makes up to a dozen for each parameter. State and numbers are those of
/// its own step, up to rounding. Returns false, and has changed nothing, for other optimizers, derived ones
/// too, and for parameters or gradients that are sparse, not of floating point, or laid out differently in
/// memory.
bool step_fused(torch::optim::Optimizer& optimizer);

}  // namespace acc::detail
