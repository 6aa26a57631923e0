// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>

#include "acc/runtime/checkpoint/pt_value.hpp"

namespace acc {

/// What accelerate keeps in random_states_<process>.pkl: the step of the accumulation and the states of
/// LibTorch's generators, those of CUDA devices where there are some. Python's own and numpy's, which C++
/// lacks, are there as if newly seeded with LibTorch's seed, so that a Python that loads the checkpoint takes
/// the rest too.
PtValue random_states(std::int64_t step);

/// Sets LibTorch's generators as the file of a process of ours or of Python's has it, and gives back the step
/// if it is there. Throws Error{config} with `where` for what is no such file.
std::optional<std::int64_t> load_random_states(const PtValue& states, const std::string& where);

}  // namespace acc
