// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ATen/core/Tensor.h>

#include <vector>

namespace acc {

/// Scales the gradients of `parameters` down so that all together have at most the norm `max_norm`, and gives
/// back the norm they had, a 0-d tensor: torch.nn.utils.clip_grad_norm_, with the same numbers and without
/// waiting for a GPU. A `norm_type` of infinity is the largest absolute value.
at::Tensor clip_grad_norm(const std::vector<at::Tensor>& parameters, double max_norm, double norm_type = 2);

/// Limits each gradient to [-clip_value, clip_value]: torch.nn.utils.clip_grad_value_.
void clip_grad_value(const std::vector<at::Tensor>& parameters, double clip_value);

}  // namespace acc
