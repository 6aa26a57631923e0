// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <unordered_map>

#include "acc/runtime/checkpoint/pt_file.hpp"

namespace torch::optim {
class Optimizer;
}

namespace acc::detail {

/// The states of parameters by their numbers: to search a dict for each takes long where there are many.
using StatesByNumber = std::unordered_map<std::int64_t, const PtValue*>;
/// Those in `state` of what optimizer_state() returns, which must outlive the result.
StatesByNumber states_by_number(const PtValue& states);

/// The state as Python's `optimizer.state_dict()` returns it for the same optimizer: `state` by the index of
/// the parameter, and `param_groups`. The tensors are not copied. Throws Error{usage} unless the optimizer is
/// one of LibTorch's.
PtValue optimizer_state(const torch::optim::Optimizer& optimizer);

/// Checks a state that optimizer_state() or Python wrote; the returned function loads it and cannot fail.
/// Options in `state` replace those of the optimizer, as in Python. Throws Error{config} with everything that
/// does not fit the optimizer: its type, groups or shapes. `where` names the file.
std::function<void()> plan_optimizer_load(torch::optim::Optimizer& optimizer, const PtValue& state,
                                          const std::string& where);

/// A number of steps as Python saves it: a tensor without dimensions, float32 as long as that is exact.
at::Tensor steps_tensor(double steps);

/// Replaces the list of parameters of one of the `param_groups`.
void replace_params(PtValue& group, PtList params);

}  // namespace acc::detail
