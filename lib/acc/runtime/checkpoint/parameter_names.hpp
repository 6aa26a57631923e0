// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ATen/core/Tensor.h>

#include <cstddef>
#include <string>
#include <unordered_map>
#include <vector>

#include "acc/runtime/checkpoint/checkpoint_content.hpp"
#include "acc/runtime/checkpoint/pt_file.hpp"

namespace acc::detail {

/// The parameters that the program gave to an optimizer of a checkpoint, group by group: those of modules,
/// also where they are sharded.
std::vector<std::vector<at::Tensor>> original_parameters(const CheckpointContent& content,
                                                         std::size_t optimizer);

/// The names of parameters in their model.
using ParameterNames = std::unordered_map<const c10::TensorImpl*, std::string>;

/// The names of what an optimizer was given. Throws Error{usage} unless all are parameters of one prepared
/// model.
ParameterNames names_in_model(const CheckpointContent& content, std::size_t optimizer);

/// Throws Error{config} unless the saved parameter group number `group` has the `expected` names, in any
/// order. `where` is where it was saved.
void require_names(std::size_t group, const PtValue& saved, const std::vector<std::string>& expected,
                   const std::string& where);

/// A state with names of parameters, as Python's FSDP saves it in full, with their numbers instead, as
/// plan_optimizer_load takes it. One with numbers is returned as it is. Throws what names_in_model and
/// require_names throw; `where` names the file.
PtValue with_numbers(const CheckpointContent& content, std::size_t optimizer, PtValue state,
                     const std::string& where);

}  // namespace acc::detail
