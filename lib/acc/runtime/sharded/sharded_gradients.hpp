// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ATen/core/Tensor.h>

#include <string_view>
#include <vector>

#include "acc/runtime/comm/process_group.hpp"

namespace acc::detail {

/// Whether one of the parameters is sharded.
bool any_is_sharded(const std::vector<at::Tensor>& parameters);

/// Throws Error{usage} if one of the parameters is a part of a shard, as an optimizer has it: a process may
/// have none, and would not take part in the norm of all.
void require_no_shard_parts(const std::vector<at::Tensor>& parameters, std::string_view function);

/// The gradients of the parameters as far as this process has them: of a sharded one the parts in its shard,
/// once averaged. They share memory with the gradients.
struct LocalGradients {
  std::vector<at::Tensor> sharded = {};
  std::vector<at::Tensor> whole = {};
};
LocalGradients local_gradients(const std::vector<at::Tensor>& parameters);

/// Together: acc::clip_grad_norm for parameters of which some are sharded. Throws Error{usage} unless
/// `norm_type` is above 0.
at::Tensor clip_sharded_grad_norm(const std::vector<at::Tensor>& parameters, double max_norm,
                                  double norm_type, ProcessGroup& group);

}  // namespace acc::detail
