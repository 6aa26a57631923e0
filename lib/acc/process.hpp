// SPDX-License-Identifier: Apache-2.0
// The process in its job: its rank, collective operations, logs, and its error file.
#pragma once

#include "acc/runtime/nested_tensors.hpp"
#include "acc/runtime/process/logger.hpp"
#include "acc/runtime/process/object_text.hpp"
#include "acc/runtime/process/operations.hpp"
#include "acc/runtime/process/partial_state.hpp"
#include "acc/runtime/process/record.hpp"
