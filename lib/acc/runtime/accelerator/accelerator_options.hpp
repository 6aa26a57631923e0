// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <filesystem>
#include <optional>
#include <vector>

#include "acc/runtime/comm/process_group.hpp"
#include "acc/runtime/optim/grad_scaler.hpp"
#include "acc/runtime/optim/gradients.hpp"
#include "acc/runtime/parallel/ddp.hpp"
#include "acc/runtime/precision/autocast.hpp"
#include "acc/runtime/sharded/fsdp_options.hpp"
#include "acc/runtime/tensors/random.hpp"
#include "acc/runtime/tracking/tracker.hpp"

namespace acc {

/// How processes join the job and communicate, as accelerate's InitProcessGroupKwargs.
struct ProcessGroupOptions {
  /// The time after which a process stops waiting for the others.
  std::chrono::milliseconds timeout = kDefaultTimeout;
  /// The backend for tensors on CUDA devices.
  CudaBackend cuda_backend = CudaBackend::nccl;
  /// What carries tensors on the CPU. Default: ACC_CPU_BACKEND, else shared_memory.
  std::optional<CpuBackend> cpu_backend = {};
};

/// accelerate's ProjectConfiguration.
struct ProjectOptions {
  /// The folder for trackers. Default: project_dir.
  std::filesystem::path logging_dir = {};
  /// Makes save_state write to `checkpoints/checkpoint_<iteration>` in project_dir.
  bool automatic_checkpoint_naming = false;
  /// The maximum number of checkpoints, at least 1; the oldest ones are removed.
  std::optional<int> total_limit = {};
  /// The number of the next checkpoint.
  int iteration = 0;
  /// The local main process of each machine writes the shared files, not only the main process.
  bool save_on_each_node = false;
};

/// The arguments of Accelerator's constructor; the names and defaults are those of accelerate 1.15.
struct AcceleratorOptions {
  /// Moves models, batches and the optimizers' state to the device when they are prepared.
  bool device_placement = true;
  /// Default: ACCELERATE_MIXED_PRECISION, else no.
  std::optional<MixedPrecision> mixed_precision = {};
  /// The number of batches for each optimizer step, see Accelerator::accumulate.
  /// ACCELERATE_GRADIENT_ACCUMULATION_STEPS takes precedence.
  int gradient_accumulation_steps = 1;
  GradientAccumulationOptions gradient_accumulation = {};  ///< Details of gradient accumulation.
  /// Uses the CPU even if there are other devices.
  bool cpu = false;
  /// The batch size of loaders is that of all processes together.
  bool split_batches = false;
  /// The main process reads batches for all processes, see SendableBatch. Default: only for iterable data
  /// sets.
  std::optional<bool> dispatch_batches = {};
  /// Prepared loaders give all processes the same number of full batches.
  bool even_batches = true;
  /// The generators that are set to rank 0's state at the start of each pass of a prepared loader.
  std::vector<RngType> rng_types = {RngType::generator};
  /// Prepared schedulers step only when the optimizer does, and once for each process, since schedules are
  /// written for a single process. If false, each call is one step.
  bool step_scheduler_with_optimizer = true;
  /// The trackers for Accelerator::log, such as `{"tensorboard", "jsonl"}` or `{"all"}`, or a shared_ptr to
  /// the program's own Tracker.
  std::vector<TrackerChoice> log_with = {};
  std::filesystem::path project_dir = {};  ///< The folder for checkpoints and trackers; empty: none.
  ProjectOptions project = {};             ///< How that folder is used.
  /// Allows optimizers to have parameters that do not belong to a prepared model, such as those of a
  /// trainable loss, whose gradients the program averages itself. Otherwise the first step on several
  /// processes throws Error{usage}.
  bool allow_unprepared_parameters = false;
  /// Calls Accelerator::check_parameters after this many steps of an optimizer; 0: never.
  int check_parameters_every = 0;
  DdpOptions ddp = {};  ///< How gradients are averaged.
  /// Shards models over the processes instead, with gradients and optimizer states. Default: if
  /// ACCELERATE_USE_FSDP is true, as FSDP_* say; else not.
  std::optional<FsdpOptions> fsdp = {};
  /// Whether acc::checkpoint in prepared models computes again in backward. If true, prepare also calls a
  /// module's activation_checkpointing_enable() or gradient_checkpointing_enable(); without one, the first
  /// forward of a training must call acc::checkpoint. Default: true if ACCELERATE_USE_FSDP and
  /// FSDP_ACTIVATION_CHECKPOINTING are; else acc::checkpoint computes again wherever a module calls it.
  std::optional<bool> activation_checkpointing = {};
  GradScalerOptions grad_scaler = {};      ///< How losses are scaled in fp16.
  ProcessGroupOptions process_group = {};  ///< How processes join and communicate.
};

}  // namespace acc
