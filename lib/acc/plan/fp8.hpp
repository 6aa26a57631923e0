// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "acc/base/environment.hpp"
#include "acc/plan/settings.hpp"

namespace acc::launcher {

/// What tells accelerate's Accelerator() in a worker how to compute in FP8.
Environment fp8_environment(const Settings& settings);

}  // namespace acc::launcher
