// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ATen/core/Tensor.h>

#include <string>
#include <string_view>
#include <vector>

#include "acc/runtime/parallel/process_group.hpp"

namespace acc {

// What PartialState does with each tensor of a structure. `group` is null where there is one process.

at::Tensor gather_tensor(const at::Tensor& tensor, ProcessGroup* group);
at::Tensor reduce_tensor(const at::Tensor& tensor, ReduceOp op, double scale, ProcessGroup* group);
at::Tensor broadcast_tensor(const at::Tensor& tensor, int from, ProcessGroup* group);

struct PadOptions {
  std::int64_t dim = 0;
  double pad_index = 0;
  bool pad_first = false;
};
at::Tensor pad_tensor(const at::Tensor& tensor, const PadOptions& options, ProcessGroup* group);

/// The texts of all processes, in rank order; each may give any number, of any length.
std::vector<std::string> gather_texts(const std::vector<std::string>& texts, ProcessGroup* group);
std::string broadcast_text(std::string_view text, int from, ProcessGroup* group);

}  // namespace acc
