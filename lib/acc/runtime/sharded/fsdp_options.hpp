// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "acc/base/environment.hpp"

namespace acc {

/// In which form save_state writes models and optimizers.
enum class StateDictType {
  /// As a whole, in the files of a training without sharding, by one process (FULL_STATE_DICT).
  full,
  /// Each process its shards, into files that Python's torch.distributed.checkpoint reads
  /// (SHARDED_STATE_DICT). No process collects what the others have.
  sharded,
};

/// Sharding of a model over the processes, as PyTorch's fully_shard (FSDP) and accelerate's fsdp_plugin:
/// gradients and optimizer states are divided among the processes, and parameters too if they are freed after
/// use. Modules need no change. A process alone trains without.
struct FsdpOptions {
  /// Frees parameters while they are not used (stage 3 of ZeRO, FULL_SHARD). If false, all processes keep all
  /// of them, and gradients and optimizer states alone are sharded (stage 2, SHARD_GRAD_OP).
  bool reshard_after_forward = true;
  /// The classes of the modules whose parameters are gathered together, as `Block`, `BlockImpl` or
  /// `demo::Block`; of modules inside of each other the innermost. Without any, the model is gathered as a
  /// whole in each forward, which saves less memory.
  std::vector<std::string> transformer_cls_to_wrap = {};
  /// Chooses modules by size instead: those with more parameters than this. 0: none.
  std::int64_t min_num_params = 0;
  /// A regular expression (ECMAScript) that the whole name of a module matches whose parameters are not
  /// sharded; each process keeps all of them, with rank 0's values. They must be frozen: nothing averages
  /// their gradients. Empty: none.
  std::string ignored_modules = {};
  /// Gathers the next parameters while the present ones compute. Costs memory for one more module.
  bool prefetch = true;
  /// How save_state writes; load_state reads either form on any number of processes.
  StateDictType state_dict_type = StateDictType::full;
};

namespace detail {

/// The options in accelerate's variables, ACCELERATE_USE_FSDP and FSDP_*, as accelerate 1.15 reads them;
/// nothing if FSDP is not asked for, or for the strategy NO_SHARD, which is DDP. Throws Error{usage} for what
/// is invalid or not there in C++, naming the variable and what to do instead.
std::optional<FsdpOptions> fsdp_options_of(const Environment& environment);

/// Whether the variables ask for activation checkpointing with FSDP, whatever the strategy. Throws
/// Error{usage} as fsdp_options_of.
bool fsdp_computes_activations_again(const Environment& environment);

/// Throws Error{usage} for options that are invalid.
void require_valid(const FsdpOptions& options);

}  // namespace detail

}  // namespace acc
