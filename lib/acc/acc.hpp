// SPDX-License-Identifier: Apache-2.0
// All of the library. Each of these headers can be included alone, which compiles faster.
#pragma once

#include "acc/accelerator.hpp"
#include "acc/activation_checkpointing.hpp"
#include "acc/base/cpp20.hpp"
#include "acc/checkpoint.hpp"
#include "acc/data.hpp"
#include "acc/error.hpp"
#include "acc/memory.hpp"
#include "acc/modules.hpp"
#include "acc/optim.hpp"
#include "acc/parallel.hpp"
#include "acc/precision.hpp"
#include "acc/process.hpp"
#include "acc/profile.hpp"
#include "acc/random.hpp"
#include "acc/tracking.hpp"
#include "acc/trainer.hpp"
