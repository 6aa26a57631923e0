// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ATen/core/Tensor.h>

#include <functional>
#include <vector>

namespace acc::detail {

/// Gathers a dense tensor of one shape and type from all ranks, in their order.
using GatherFromAll = std::function<std::vector<at::Tensor>(const at::Tensor&)>;

/// Makes a sparse tensor the sum of those of all ranks, coalesced. It adds in the order of ranks, as
/// ProcessGroupGloo does, whose own sum of sparse tensors corrupts memory while another operation runs beside
/// it (seen in LibTorch 2.11, also from Python). Throws the same Error{usage} on all ranks when their tensors
/// differ in shape, sparse dimensions or type.
void sum_sparse(at::Tensor& tensor, const GatherFromAll& gather);

}  // namespace acc::detail
