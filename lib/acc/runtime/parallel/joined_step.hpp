// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <torch/csrc/distributed/c10d/Work.hpp>

#include "acc/runtime/parallel/ddp.hpp"

namespace acc::detail {

/// What the modules of one join_uneven_inputs share while their processes still have data.
struct JoinedStep {
  /// The model whose forward begins a step.
  const DdpReplica* first = nullptr;
  bool divide_by_initial_world_size = true;
  /// The sum of ones over the processes that take part in the present step.
  c10::intrusive_ptr<c10d::Work> begins = {};
};

}  // namespace acc::detail
