// SPDX-License-Identifier: Apache-2.0
// The Accelerator: trains on one or many processes with the same program.
#pragma once

#include "acc/base/cpp20.hpp"
#include "acc/runtime/accelerator.hpp"
#include "acc/runtime/accelerator_options.hpp"
#include "acc/runtime/prepared.hpp"
