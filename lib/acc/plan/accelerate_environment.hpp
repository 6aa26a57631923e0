// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "acc/base/environment.hpp"
#include "acc/plan/job_shape.hpp"
#include "acc/plan/launch_inputs.hpp"
#include "acc/plan/settings.hpp"

namespace acc::launcher {

/// The variables that `accelerate launch` 1.15 adds for every worker, so that an unmodified Python
/// `Accelerator()` behaves as under it. gpu_ids are indices into the inherited device mask.
Environment accelerate_environment(const LaunchInputs& inputs, const JobShape& shape,
                                   const Settings& settings);

/// OMP_NUM_THREADS, or nothing if workers keep the inherited value. `acc launch` divides the allowed
/// physical cores among the workers; torchrun's rules set 1 if there are several. Stores the number and its
/// origin in `settings`.
Environment thread_environment(const LaunchInputs& inputs, const JobShape& shape, Settings& settings);

/// The variables that make Accelerator() shard with FSDP. A sharding strategy of version 1 under
/// fsdp_reshard_after_forward, where accelerate's questionnaire writes it, is used. Throws Error{usage} if
/// settings contradict each other.
Environment fsdp_environment(const Settings& settings);

/// The variables that configure FP8 for Accelerator().
Environment fp8_environment(const Settings& settings);

/// The variables that make Accelerator() train with Megatron-LM.
Environment megatron_environment(const Settings& settings);

/// Whether the sizes of the parallel dimensions apply: requested by a flag, or by the file's section unless
/// a flag chose another kind of training (accelerate's rule).
bool uses_parallelism(const Settings& settings);

/// The variables with the sizes of the parallel dimensions.
Environment parallelism_environment(const Settings& settings);

/// NCCL_P2P_DISABLE and NCCL_IB_DISABLE for machines without peer-to-peer access, on which NCCL would hang:
/// several RTX 40 GPUs with a driver older than 550.40.07. Inherited values are kept.
Environment peer_to_peer_environment(const LaunchInputs& inputs);

/// Notes on variables that a user has exported and that `environment`, of the workers, replaces by defaults,
/// as accelerate does. None where another launcher has set them.
std::vector<std::string> notes_on_replaced(const LaunchInputs& inputs, const Settings& settings,
                                           const Environment& environment);

}  // namespace acc::launcher
