// SPDX-License-Identifier: Apache-2.0
// Seeds, the same on every process or one for each.
#pragma once

#include "acc/runtime/random.hpp"
