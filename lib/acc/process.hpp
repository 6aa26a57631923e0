// SPDX-License-Identifier: Apache-2.0
// This process in its job: rank, collective operations, logger and error file.
#pragma once

#include "acc/base/cpp20.hpp"
#include "acc/runtime/nested_tensors.hpp"
#include "acc/runtime/process/logger.hpp"
#include "acc/runtime/process/object_text.hpp"
#include "acc/runtime/process/operations.hpp"
#include "acc/runtime/process/partial_state.hpp"
#include "acc/runtime/process/record.hpp"
