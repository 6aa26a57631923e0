// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <CLI/CLI.hpp>

namespace acc::launcher {

/// `acc to-fsdp2`: rewrites a config file for version 2 of FSDP.
void add_to_fsdp2_command(CLI::App& app, int& code);

}  // namespace acc::launcher
