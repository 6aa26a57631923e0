// SPDX-License-Identifier: Apache-2.0
// Memory of devices, and the batch size that fits into it.
#pragma once

#include "acc/runtime/memory.hpp"
