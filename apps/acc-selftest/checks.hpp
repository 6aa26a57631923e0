// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "acc/runtime/accelerator.hpp"

namespace acc::selftest {

/// What is wrong, or empty. It may differ between the processes; all of them take part in each check.
using Complaint = std::string;

/// One promise of the runtime, tried on the processes that there are.
struct Check {
  std::string_view name = {};
  Complaint (*run)(Accelerator&) = nullptr;
};

/// What each process is told agrees with what the others are told.
Complaint check_state(Accelerator& accelerator);

/// main_process_first lets the main process finish before the others begin.
Complaint check_process_order(Accelerator& accelerator);

/// Sums, maxima, gathering and broadcasts of every type that Gloo carries.
Complaint check_collectives(Accelerator& accelerator);

/// Each sample comes exactly once, in order and shuffled, and gathered metrics see it once.
Complaint check_sharded_loading(Accelerator& accelerator);
Complaint check_shuffled_loading(Accelerator& accelerator);

/// The same where the main process reads for all.
Complaint check_dispatched_loading(Accelerator& accelerator);
Complaint check_dispatched_shuffling(Accelerator& accelerator);

/// The batches of a program's own batch sampler are dealt out as they are.
Complaint check_batch_sampler(Accelerator& accelerator);

/// A loader's seed decides its order.
Complaint check_data_seed(Accelerator& accelerator);

/// The generators of all processes are in one state after set_seed.
Complaint check_random_state(Accelerator& accelerator);

/// Many processes train as one that sees the whole batch.
Complaint check_training(Accelerator& accelerator);

/// The loss falls under bfloat16 autocast, and the parameters stay equal.
Complaint check_bf16_training(Accelerator& accelerator);

}  // namespace acc::selftest
