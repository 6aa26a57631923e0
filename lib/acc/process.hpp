// SPDX-License-Identifier: Apache-2.0
// This process in its job: rank, collective operations, logger, progress and error file.
#pragma once

#include "acc/base/cpp20.hpp"
#include "acc/runtime/comm/object_text.hpp"
#include "acc/runtime/comm/operations.hpp"
#include "acc/runtime/comm/progress.hpp"
#include "acc/runtime/comm/record.hpp"
#include "acc/runtime/process/logger.hpp"
#include "acc/runtime/process/partial_state.hpp"
#include "acc/runtime/tensors/nested_tensors.hpp"
