// SPDX-License-Identifier: Apache-2.0
// The Accelerator: trains on one or many processes with the same program.
#pragma once

#include "acc/base/cpp20.hpp"
#include "acc/runtime/accelerator/accelerator.hpp"
#include "acc/runtime/accelerator/accelerator_options.hpp"
#include "acc/runtime/accelerator/prepared.hpp"
