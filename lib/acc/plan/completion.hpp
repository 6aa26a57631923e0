// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>

#include "acc/config/schema.hpp"

namespace acc::launcher {

/// A script for the shell (bash or zsh) that completes the flags of `program`: `torchrun`, `acc run`. Words
/// that are no flags complete as file names.
std::string completion(std::string_view shell, Dialect dialect, std::string_view program);

}  // namespace acc::launcher
