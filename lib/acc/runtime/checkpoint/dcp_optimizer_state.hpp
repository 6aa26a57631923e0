// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "acc/runtime/checkpoint/dcp_checkpoint.hpp"

namespace torch::optim {
class Optimizer;
}

namespace acc::detail {

/// The range of a model's parameter that an optimizer has as a parameter.
struct ParameterRange {
  std::string name = {};                 ///< Of the model's parameter.
  std::vector<std::int64_t> shape = {};  ///< Of the model's parameter.
  std::int64_t begin = 0;                ///< In the model's parameter, in row-major order.
  std::int64_t numel = 0;
};

/// What the parameters of an optimizer are that trains a sharded model.
struct ShardedParameters {
  /// For each parameter that the optimizer has on this process, group by group; nullopt if another process
  /// saves it.
  std::vector<std::optional<ParameterRange>> ranges = {};
  /// For each group, the names of all its parameters, on all processes.
  std::vector<std::vector<std::string>> names = {};
};

/// The state of the optimizer as Python's get_optimizer_state_dict names it, under the key `optimizer`, as
/// accelerate saves it: `optimizer.state.NAME.exp_avg` and `optimizer.param_groups.0.lr`. Numbers that belong
/// to a whole parameter, as its steps, are saved by the process that has its first element. `initial_rates`
/// of the groups, if any, become their `initial_lr`, which Python requires of an optimizer with a scheduler.
ShardedState dcp_optimizer_state(const torch::optim::Optimizer& optimizer,
                                 const ShardedParameters& parameters,
                                 const std::vector<double>& initial_rates = {});

/// Reads such a state from a checkpoint, written by any number of processes, as plan_optimizer_load takes it
/// for this optimizer, whose own state does not matter.
/// Throws Error{config} if it is the state of an optimizer of other parameters.
PtValue read_dcp_optimizer_state(const std::filesystem::path& folder,
                                 const torch::optim::Optimizer& optimizer,
                                 const ShardedParameters& parameters);

}  // namespace acc::detail
