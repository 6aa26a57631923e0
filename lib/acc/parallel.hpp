// SPDX-License-Identifier: Apache-2.0
// Data-parallel models, on many processes or on the devices of one.
#pragma once

#include "acc/runtime/parallel/data_parallel.hpp"
#include "acc/runtime/parallel/ddp.hpp"
#include "acc/runtime/parallel/join.hpp"
#include "acc/runtime/parallel/local_sgd.hpp"
#include "acc/runtime/parallel/model.hpp"
#include "acc/runtime/parallel/process_group.hpp"
#include "acc/runtime/parallel/sync_batch_norm.hpp"
