// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <vector>

#include "acc/runtime/checkpoint/pt_value.hpp"

namespace torch::nn {
class Module;
}

namespace acc {

/// The gradients that the models' parameters have gathered so far on this process: for each model a dict of
/// them by the parameters' names.
PtValue gradients_of(const std::vector<torch::nn::Module*>& models);

/// How gradients are set that `parts` of as many processes had gathered: their sum times `scale`. Throws
/// Error{config} naming a parameter whose gradient is missing in the model or of another shape; nothing is
/// changed before the result is called.
std::function<void()> plan_gradients_load(const std::vector<torch::nn::Module*>& models,
                                          const std::vector<PtValue>& parts, double scale);

}  // namespace acc
