// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "acc/base/environment.hpp"
#include "acc/plan/settings.hpp"

namespace acc::launcher {

/// What tells accelerate's Accelerator() in a worker to shard with FSDP. A sharding strategy of version 1
/// that stands under fsdp_reshard_after_forward (where accelerate's questionnaire writes it) holds. Throws
/// Error{usage} when settings contradict each other.
Environment fsdp_environment(const Settings& settings);

}  // namespace acc::launcher
