// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ATen/core/Tensor.h>

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "acc/base/error.hpp"
#include "acc/runtime/comm/process_group.hpp"
#include "acc/runtime/sharded/fsdp_options.hpp"

namespace torch::nn {
class Module;
}

namespace acc::detail {

/// The parameters of a unit, each once, in the module's order.
struct UnitPlan {
  /// The name of its module; empty for the root.
  std::string name = {};
  struct Parameter {
    std::string name = {};
    at::Tensor tensor = {};
  };
  std::vector<Parameter> parameters = {};
};

/// Divides a module's parameters into units: the root, which has what belongs to no other and what several
/// share, then those of the modules that the options choose, in the module's order. Units without parameters
/// are left out. Throws Error{usage} when a class is not in the module, a parameter cannot be sharded, as
/// that of an embedding with sparse gradients, or an ignored one is not frozen.
std::vector<UnitPlan> plan_units(const torch::nn::Module& module, const FsdpOptions& options);

/// Throws Error{usage} that names the parameter: that of an embedding with sparse(true), or, in backward, of
/// at::embedding with sparse gradients, which no layer tells of.
[[noreturn]] void refuse_sparse_gradient(const std::string& parameter);

/// How a rank divides the model, of which it keeps all parameters after forward or not: a line for each unit.
std::vector<std::string> describe_plan(const std::vector<UnitPlan>& plan, const FsdpOptions& options);

/// An Error that names the first line in which a rank differs from rank 0; nothing when all ranks agree.
std::optional<Error> find_difference(const std::vector<std::vector<std::string>>& by_rank);

/// plan_units() on all ranks of the group. Throws the same Error{usage} on each if they divide the model
/// differently, and an Error{system} where another rank alone could not divide it.
std::vector<UnitPlan> plan_same_units(const torch::nn::Module& module, const FsdpOptions& options,
                                      ProcessGroup& group);

/// Whether the demangled name of a class, as `demo::BlockImpl`, is `name`, as `Block`, `BlockImpl` or
/// `demo::Block`.
bool is_class(std::string_view demangled, std::string_view name);

}  // namespace acc::detail
