// SPDX-License-Identifier: Apache-2.0
// Seeds and states of random number generators.
#pragma once

#include "acc/runtime/random.hpp"
