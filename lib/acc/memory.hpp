// SPDX-License-Identifier: Apache-2.0
// The largest batch size that fits into memory.
#pragma once

#include "acc/base/cpp20.hpp"
#include "acc/runtime/tensors/memory.hpp"
