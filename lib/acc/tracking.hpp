// SPDX-License-Identifier: Apache-2.0
// Trackers, which store the metrics of a training.
#pragma once

#include "acc/base/cpp20.hpp"
#include "acc/runtime/tracking/file_trackers.hpp"
#include "acc/runtime/tracking/tracker.hpp"
