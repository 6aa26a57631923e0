// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "acc/runtime/accelerator/accelerator_options.hpp"
#include "acc/runtime/accelerator/settings_agreement.hpp"
#include "acc/runtime/trainer/training_arguments.hpp"

namespace acc::detail {

/// The options of the Accelerator with which a Trainer follows these arguments.
AcceleratorOptions accelerator_options(const TrainingArguments& arguments);

/// All arguments but those that a machine or a process may have of its own; `resume_from_checkpoint` is that
/// of this call of train.
SharedSettings shared_settings(const TrainingArguments& arguments, const std::string& resume_from_checkpoint);

}  // namespace acc::detail
