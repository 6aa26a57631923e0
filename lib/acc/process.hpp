// SPDX-License-Identifier: Apache-2.0
// This process among those of its job: its place, collective operations, logs, and what it leaves when it
// fails.
#pragma once

#include "acc/runtime/process/logger.hpp"
#include "acc/runtime/process/operations.hpp"
#include "acc/runtime/process/partial_state.hpp"
#include "acc/runtime/process/record.hpp"
#include "acc/runtime/process/split.hpp"
