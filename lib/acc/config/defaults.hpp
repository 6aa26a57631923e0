// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string_view>

#include "acc/config/read.hpp"
#include "acc/config/schema.hpp"

namespace acc::launcher {

/// The kind of file that the values make.
ConfigKind kind_of(const ConfigValues& values);

/// The values with everything that accelerate fills in when a file of their kind leaves it out.
ConfigValues with_defaults(ConfigValues values);

/// What `acc config default` writes for a machine with that many visible GPUs: one worker for each, or one on
/// the CPU. accelerate's write_basic_config gives the same.
ConfigValues default_config(int gpus, std::string_view mixed_precision);

}  // namespace acc::launcher
