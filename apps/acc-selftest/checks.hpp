// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "acc/runtime/accelerator/accelerator.hpp"

namespace acc::selftest {

/// What is wrong; empty if the check passed. It may differ between processes, all of which run each check.
using Failure = std::string;

/// A check of the runtime on the processes of this job.
struct Check {
  std::string_view name = {};
  Failure (*run)(Accelerator&) = nullptr;
};

/// Ranks, sizes and devices agree with the environment and between processes.
Failure check_state(Accelerator& accelerator);

/// main_process_first lets the main process finish before the others begin.
Failure check_process_order(Accelerator& accelerator);

/// Sums, maxima, gather and broadcast work for every type that Gloo supports.
Failure check_collectives(Accelerator& accelerator);

/// Each sample is read exactly once, in order and shuffled, and gather_for_metrics returns it once.
Failure check_sharded_loading(Accelerator& accelerator);
Failure check_shuffled_loading(Accelerator& accelerator);

/// The same when the main process reads for all.
Failure check_dispatched_loading(Accelerator& accelerator);
Failure check_dispatched_shuffling(Accelerator& accelerator);

/// The batches of a program's own batch sampler are distributed unchanged.
Failure check_batch_sampler(Accelerator& accelerator);

/// A loader's seed determines its order.
Failure check_data_seed(Accelerator& accelerator);

/// The generators of all processes have the same state after set_seed.
Failure check_random_state(Accelerator& accelerator);

/// Several processes train like a single one with the whole batch.
Failure check_training(Accelerator& accelerator);

/// The loss falls under bfloat16 autocast, and the parameters stay equal.
Failure check_bf16_training(Accelerator& accelerator);

/// on_main_process and similar functions call a function exactly on the named process.
Failure check_where_functions_run(Accelerator& accelerator);

/// split_between_processes gives each process its part of lists, maps and tensors, also of uneven lengths.
Failure check_splitting(Accelerator& accelerator);

/// A trigger that one process sets is seen by all, once.
Failure check_trigger(Accelerator& accelerator);

/// The loss falls in fp16 with its GradScaler, and the parameters stay equal.
Failure check_fp16_training(Accelerator& accelerator);

/// Gradients accumulate over the batches, and the optimizer steps at every third batch and at the last.
Failure check_accumulation(Accelerator& accelerator);

}  // namespace acc::selftest
