// SPDX-License-Identifier: Apache-2.0
// The Accelerator: what it takes to train on many processes or one with the same program.
#pragma once

#include "acc/runtime/accelerator.hpp"
