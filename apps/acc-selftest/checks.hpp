// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "acc/runtime/accelerator.hpp"

namespace acc::selftest {

/// What is wrong; empty when the check passed. It may differ between processes, all of which take part in
/// each check.
using Failure = std::string;

/// A promise of the runtime, checked on the processes of this job.
struct Check {
  std::string_view name = {};
  Failure (*run)(Accelerator&) = nullptr;
};

/// Ranks, sizes and devices agree with the environment and between processes.
Failure check_state(Accelerator& accelerator);

/// main_process_first lets the main process finish before the others begin.
Failure check_process_order(Accelerator& accelerator);

/// Sums, maxima, gathering and broadcasts of every type that Gloo carries.
Failure check_collectives(Accelerator& accelerator);

/// Each sample comes exactly once, in order and shuffled, and gathered metrics see it once.
Failure check_sharded_loading(Accelerator& accelerator);
Failure check_shuffled_loading(Accelerator& accelerator);

/// The same where the main process reads for all.
Failure check_dispatched_loading(Accelerator& accelerator);
Failure check_dispatched_shuffling(Accelerator& accelerator);

/// The batches of a program's own batch sampler are dealt out as they are.
Failure check_batch_sampler(Accelerator& accelerator);

/// A loader's seed decides its order.
Failure check_data_seed(Accelerator& accelerator);

/// The generators of all processes are in one state after set_seed.
Failure check_random_state(Accelerator& accelerator);

/// Many processes train as one that sees the whole batch.
Failure check_training(Accelerator& accelerator);

/// The loss falls under bfloat16 autocast, and the parameters stay equal.
Failure check_bf16_training(Accelerator& accelerator);

/// on_main_process and its like run a function exactly where they say.
Failure check_where_functions_run(Accelerator& accelerator);

/// split_between_processes gives each process its part of lists, maps and tensors, also where it does not
/// divide.
Failure check_splitting(Accelerator& accelerator);

/// What one process sets all see, once.
Failure check_trigger(Accelerator& accelerator);

/// The loss falls in fp16 with its GradScaler, and the parameters stay equal.
Failure check_fp16_training(Accelerator& accelerator);

/// Gradients add up over the batches, and the optimizer steps at every third and at the last.
Failure check_accumulation(Accelerator& accelerator);

}  // namespace acc::selftest
