// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "acc/base/environment.hpp"

namespace acc {

/// Tells malloc to keep the memory that tensors free. Every training step asks for the same sizes again, and
/// fetching them from the kernel costs a tenth of the step; the price is that the process stays as large as
/// it once was. An Accelerator's constructor calls it where it may.
void keep_freed_memory();

/// False where the person who starts the program has tuned malloc.
bool may_keep_freed_memory(const Environment& environment);

}  // namespace acc
