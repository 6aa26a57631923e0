// SPDX-License-Identifier: Apache-2.0
// Seeds and states of random number generators.
#pragma once

#include "acc/base/cpp20.hpp"
#include "acc/runtime/tensors/random.hpp"
