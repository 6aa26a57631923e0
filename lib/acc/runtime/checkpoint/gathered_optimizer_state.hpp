// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "acc/runtime/checkpoint/pt_file.hpp"

namespace acc::detail {

class ShardedOptimizer;

/// Together: the state of the optimizer as optimizer_state() would return it if the models were not sharded,
/// with whole tensors, in the order in which the optimizer was given its parameters. Where `keep` is false it
/// is None, and no more than a unit is in memory at once.
PtValue gathered_optimizer_state(const ShardedOptimizer& optimizer, bool keep);

/// The part of such a state, from here or from Python, that belongs to this process's shards, for
/// plan_optimizer_load. Throws Error{config} when groups or shapes do not fit; `where` names the file.
PtValue shard_of_optimizer_state(const ShardedOptimizer& optimizer, const PtValue& full,
                                 const std::string& where);

}  // namespace acc::detail
