// SPDX-License-Identifier: Apache-2.0
// Optimizers that keep step with accumulated gradients, clipping, and learning rate schedules.
#pragma once

#include "acc/runtime/optim/accelerated_scheduler.hpp"
#include "acc/runtime/optim/clip_grad.hpp"
#include "acc/runtime/optim/learning_rate.hpp"
#include "acc/runtime/optim/optimizer.hpp"
#include "acc/runtime/optim/schedulers.hpp"
#include "acc/runtime/optim/torch_scheduler.hpp"
