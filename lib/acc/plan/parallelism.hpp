// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "acc/base/environment.hpp"
#include "acc/plan/settings.hpp"

namespace acc::launcher {

/// Whether the sizes of the parallel dimensions hold: asked for by a flag, or by the file's section unless a
/// flag chose another way to train than the file (accelerate's rule).
bool uses_parallelism(const Settings& settings);

/// What tells accelerate's Accelerator() in a worker these sizes.
Environment parallelism_environment(const Settings& settings);

}  // namespace acc::launcher
