// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <torch/csrc/distributed/c10d/Work.hpp>

#include "acc/runtime/parallel/ddp.hpp"

namespace acc::detail {

/// The state that the models of one join_uneven_inputs share on a process that still has data.
struct JoinedStep {
  /// The model whose forward begins a step.
  const DdpReplica* first = nullptr;
  bool divide_by_initial_world_size = true;
  /// The all-reduce that counts the processes with data in the current step.
  c10::intrusive_ptr<c10d::Work> begins = {};
};

}  // namespace acc::detail
