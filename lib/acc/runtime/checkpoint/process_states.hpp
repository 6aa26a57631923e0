// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <vector>

#include "acc/runtime/checkpoint/pt_file.hpp"

namespace torch::nn {
class Module;
}

namespace acc::detail {

/// The content of accelerate's random_states_<process>.pkl: the step of the accumulation and the states of
/// LibTorch's generators, including those of CUDA devices. The generators of Python's random and of numpy,
/// which C++ lacks, are written as if just seeded with LibTorch's seed, so that Python can load the file.
PtValue random_states(std::int64_t step);

/// Sets LibTorch's generators from the content of such a file, written by acc or by Python, and returns its
/// step, if any. Throws Error{config} with `where` for any other content.
std::optional<std::int64_t> load_random_states(const PtValue& states, const std::string& where);

/// The gradients that this process has accumulated: for each model a dict by parameter name.
PtValue gradients_of(const std::vector<torch::nn::Module*>& models);

/// Checks the gradients that several processes saved in `parts`; the returned function sets the models'
/// gradients to their sum times `scale`. Throws Error{config} naming a parameter that is missing in the model
/// or has another shape.
std::function<void()> plan_gradients_load(const std::vector<torch::nn::Module*>& models,
                                          const std::vector<PtValue>& parts, double scale);

}  // namespace acc::detail
