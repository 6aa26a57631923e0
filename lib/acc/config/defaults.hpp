// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string_view>

#include "acc/config/read.hpp"

namespace acc {

/// The values with everything that accelerate fills in when a file leaves it out. SageMaker's files stay as
/// they are: their keys are not acc's.
ConfigValues with_defaults(ConfigValues values);

/// What `acc config default` writes for a machine with that many visible GPUs: one worker for each, or one on
/// the CPU. accelerate's write_basic_config gives the same.
ConfigValues default_config(int gpus, std::string_view mixed_precision);

}  // namespace acc
