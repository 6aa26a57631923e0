// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <filesystem>
#include <optional>
#include <vector>

#include "acc/runtime/optim/gradient_state.hpp"
#include "acc/runtime/parallel/ddp.hpp"
#include "acc/runtime/parallel/process_group.hpp"
#include "acc/runtime/precision/grad_scaler.hpp"
#include "acc/runtime/precision/mixed_precision.hpp"
#include "acc/runtime/random.hpp"
#include "acc/runtime/tracking/trackers.hpp"

namespace acc {

/// How the processes find each other and talk.
struct ProcessGroupOptions {
  /// How long a process waits for the others before it gives up.
  std::chrono::milliseconds timeout = kDefaultTimeout;
  /// What carries tensors on CUDA devices: InitProcessGroupKwargs' backend.
  CudaBackend cuda_backend = CudaBackend::nccl;
};

/// Where a training keeps its files: accelerate's ProjectConfiguration.
struct ProjectOptions {
  /// For trackers. Default: the project's folder.
  std::filesystem::path logging_dir = {};
  /// save_state writes to `checkpoints/checkpoint_<iteration>` below the project's folder.
  bool automatic_checkpoint_naming = false;
  /// At most that many checkpoints stay, at least 1; the oldest go.
  std::optional<int> total_limit = {};
  /// The number of the next checkpoint.
  int iteration = 0;
  /// The first process of each machine writes what is shared, not only that of the first machine.
  bool save_on_each_node = false;
};

/// What Accelerator's constructor takes; the names and defaults are those of accelerate 1.15.
struct AcceleratorOptions {
  /// Models, batches and the optimizers' state go to the device when they are prepared.
  bool device_placement = true;
  /// Default: ACCELERATE_MIXED_PRECISION, else no.
  std::optional<MixedPrecision> mixed_precision = {};
  /// Batches to an optimizer step, see Accelerator::accumulate. The variable
  /// ACCELERATE_GRADIENT_ACCUMULATION_STEPS wins over it.
  int gradient_accumulation_steps = 1;
  GradientAccumulationOptions gradient_accumulation = {};
  /// Stays on the CPU although there are other devices.
  bool cpu = false;
  /// The loaders' batch size is that of all processes together.
  bool split_batches = false;
  /// The main process reads the batches for all, see SendableBatch. Default: only where the data cannot be
  /// read by index.
  std::optional<bool> dispatch_batches = {};
  /// Prepared loaders give every process the same number of full batches.
  bool even_batches = true;
  /// Which generators take rank 0's state at the start of each pass of a prepared loader.
  std::vector<RngType> rng_types = {RngType::generator};
  /// Prepared schedulers step only with the optimizer, and once for each process: they are written for the
  /// number of steps that one process would do. Off: each call is one step.
  bool step_scheduler_with_optimizer = true;
  /// What keeps that which Accelerator::log is given: `{"tensorboard", "jsonl"}`, `{"all"}`, or a shared_ptr
  /// to a Tracker of the program's own.
  std::vector<TrackerChoice> log_with = {};
  std::filesystem::path project_dir = {};
  ProjectOptions project = {};
  /// Optimizers may hold parameters of no prepared model, as those of a loss that learns, which the program
  /// then averages over the processes itself. Without it the first step refuses them on several processes.
  bool allow_unprepared_parameters = false;
  /// After each so many steps of an optimizer, Accelerator::check_parameters; 0: never.
  int check_parameters_every = 0;
  DdpOptions ddp = {};
  GradScalerOptions grad_scaler = {};
  ProcessGroupOptions process_group = {};
};

}  // namespace acc
