// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <string>

#include "acc/runtime/checkpoint/pt_file.hpp"

namespace torch::optim {
class Optimizer;
}

namespace acc::detail {

/// What Python's `optimizer.state_dict()` gives for the same optimizer: `state` by the number of the
/// parameter, and `param_groups`. The tensors are the optimizer's own. LibTorch's own; throws Error{usage}
/// for others.
PtValue optimizer_state(const torch::optim::Optimizer& optimizer);

/// Checks a state of optimizer_state() or of Python; the returned function loads it and cannot fail. Options
/// in `state` replace the optimizer's, as in Python. Throws Error{config} with everything that does not fit
/// the optimizer: another kind, other groups, other shapes. `where` is its file.
std::function<void()> plan_optimizer_load(torch::optim::Optimizer& optimizer, const PtValue& state,
                                          const std::string& where);

}  // namespace acc::detail
