// SPDX-License-Identifier: Apache-2.0
// Mixed precision: autocast, and the gradient scaler for fp16.
#pragma once

#include "acc/base/cpp20.hpp"
#include "acc/runtime/optim/grad_scaler.hpp"
#include "acc/runtime/precision/autocast.hpp"
