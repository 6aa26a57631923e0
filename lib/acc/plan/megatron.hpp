// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "acc/base/environment.hpp"
#include "acc/plan/settings.hpp"

namespace acc::launcher {

/// What tells accelerate's Accelerator() in a worker to train with Megatron-LM.
Environment megatron_environment(const Settings& settings);

}  // namespace acc::launcher
