// SPDX-License-Identifier: Apache-2.0
// Activations that are computed again in backward, to save memory.
#pragma once

#include "acc/base/cpp20.hpp"
#include "acc/runtime/recomputation/checkpoint_function.hpp"
