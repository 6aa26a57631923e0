// SPDX-License-Identifier: Apache-2.0
// Trackers: where a training writes its metrics.
#pragma once

#include "acc/runtime/tracking/json_lines_tracker.hpp"
#include "acc/runtime/tracking/tensorboard_tracker.hpp"
#include "acc/runtime/tracking/tracker.hpp"
#include "acc/runtime/tracking/trackers.hpp"
