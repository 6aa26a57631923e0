// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <filesystem>
#include <optional>
#include <vector>

#include "acc/runtime/optim/gradients.hpp"
#include "acc/runtime/parallel/ddp.hpp"
#include "acc/runtime/parallel/process_group.hpp"
#include "acc/runtime/precision/autocast.hpp"
#include "acc/runtime/precision/grad_scaler.hpp"
#include "acc/runtime/random.hpp"
#include "acc/runtime/tracking/tracker.hpp"

namespace acc {

/// How the processes join and communicate.
struct ProcessGroupOptions {
  /// The time after which a process gives up waiting for the others.
  std::chrono::milliseconds timeout = kDefaultTimeout;
  /// The backend for tensors on CUDA devices, as in InitProcessGroupKwargs.
  CudaBackend cuda_backend = CudaBackend::nccl;
};

/// The files of a training: accelerate's ProjectConfiguration.
struct ProjectOptions {
  /// For trackers. Default: the project's folder.
  std::filesystem::path logging_dir = {};
  /// save_state writes to `checkpoints/checkpoint_<iteration>` below the project's folder.
  bool automatic_checkpoint_naming = false;
  /// The number of checkpoints that are kept, at least 1; the oldest are removed.
  std::optional<int> total_limit = {};
  /// The number of the next checkpoint.
  int iteration = 0;
  /// The first process of each machine writes the shared files, not only that of the first machine.
  bool save_on_each_node = false;
};

/// The arguments of Accelerator's constructor; the names and defaults are those of accelerate 1.15.
struct AcceleratorOptions {
  /// Moves models, batches and the optimizers' state to the device when they are prepared.
  bool device_placement = true;
  /// Default: ACCELERATE_MIXED_PRECISION, else no.
  std::optional<MixedPrecision> mixed_precision = {};
  /// Batches for each optimizer step, see Accelerator::accumulate. The variable
  /// ACCELERATE_GRADIENT_ACCUMULATION_STEPS takes precedence.
  int gradient_accumulation_steps = 1;
  GradientAccumulationOptions gradient_accumulation = {};
  /// Uses the CPU even if there are other devices.
  bool cpu = false;
  /// The loaders' batch size is that of all processes together.
  bool split_batches = false;
  /// The main process reads the batches for all, see SendableBatch. Default: only where the data cannot be
  /// read by index.
  std::optional<bool> dispatch_batches = {};
  /// Prepared loaders give every process the same number of full batches.
  bool even_batches = true;
  /// The generators that are set to rank 0's state at the start of each pass of a prepared loader.
  std::vector<RngType> rng_types = {RngType::generator};
  /// Prepared schedulers step only with the optimizer, and once for each process, since schedules count the
  /// steps of a single process. Off: each call is one step.
  bool step_scheduler_with_optimizer = true;
  /// The trackers for Accelerator::log: `{"tensorboard", "jsonl"}`, `{"all"}`, or a shared_ptr to a Tracker
  /// of the program's own.
  std::vector<TrackerChoice> log_with = {};
  std::filesystem::path project_dir = {};
  ProjectOptions project = {};
  /// Allows optimizers to have parameters that belong to no prepared model, as those of a trainable loss,
  /// which the program then averages itself. Without it the first step on several processes throws an Error.
  bool allow_unprepared_parameters = false;
  /// Calls Accelerator::check_parameters after every so many steps of an optimizer; 0: never.
  int check_parameters_every = 0;
  DdpOptions ddp = {};
  GradScalerOptions grad_scaler = {};
  ProcessGroupOptions process_group = {};
};

}  // namespace acc
