// SPDX-License-Identifier: Apache-2.0
// The Trainer: the training loop with evaluation, checkpoints and logs.
#pragma once

#include "acc/base/cpp20.hpp"
#include "acc/runtime/trainer/default_loss.hpp"
#include "acc/runtime/trainer/trainer.hpp"
#include "acc/runtime/trainer/trainer_base.hpp"
#include "acc/runtime/trainer/trainer_callback.hpp"
#include "acc/runtime/trainer/trainer_state.hpp"
#include "acc/runtime/trainer/training_arguments.hpp"
