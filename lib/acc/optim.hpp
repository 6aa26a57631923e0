// SPDX-License-Identifier: Apache-2.0
// Optimizers with gradient accumulation, clipping, and learning rate schedules.
#pragma once

#include "acc/base/cpp20.hpp"
#include "acc/runtime/optim/accelerated_scheduler.hpp"
#include "acc/runtime/optim/adafactor.hpp"
#include "acc/runtime/optim/gradients.hpp"
#include "acc/runtime/optim/learning_rate.hpp"
#include "acc/runtime/optim/muon.hpp"
#include "acc/runtime/optim/optimizer.hpp"
#include "acc/runtime/optim/schedulers.hpp"
