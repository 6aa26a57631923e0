// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ATen/core/Tensor.h>

#include <functional>
#include <vector>

namespace acc {

/// Copies of `outputs` that pass gradients on to them and call `on_backward` when they do. An output that
/// the loss does not use passes no gradient on, rather than one of zeros: what leads to it alone counts as
/// unused. What DistributedDataParallel's sink in Python does.
std::vector<at::Tensor> pass_through_sink(const std::vector<at::Tensor>& outputs,
                                          const std::function<void()>& on_backward);

}  // namespace acc
