// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "checks.hpp"

namespace acc::selftest {

/// The loss falls in fp16 with its GradScaler, and the parameters stay equal.
Complaint check_fp16_training(Accelerator& accelerator);

/// Gradients add up over the batches, and the optimizer steps at every third and at the last.
Complaint check_accumulation(Accelerator& accelerator);

}  // namespace acc::selftest
