// SPDX-License-Identifier: Apache-2.0
// Data-parallel and sharded models, on many processes or on the devices of one.
#pragma once

#include "acc/base/cpp20.hpp"
#include "acc/runtime/comm/process_group.hpp"
#include "acc/runtime/parallel/data_parallel.hpp"
#include "acc/runtime/parallel/ddp.hpp"
#include "acc/runtime/parallel/distributed_module.hpp"
#include "acc/runtime/parallel/join.hpp"
#include "acc/runtime/parallel/local_sgd.hpp"
#include "acc/runtime/parallel/model.hpp"
#include "acc/runtime/parallel/sync_batch_norm.hpp"
#include "acc/runtime/sharded/fsdp_options.hpp"
#include "acc/runtime/sharded/gathered_parameters.hpp"
