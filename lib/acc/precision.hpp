// SPDX-License-Identifier: Apache-2.0
// Mixed precision: autocast and the scaler of fp16's gradients.
#pragma once

#include "acc/runtime/precision/autocast.hpp"
#include "acc/runtime/precision/grad_scaler.hpp"
#include "acc/runtime/precision/mixed_precision.hpp"
