// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <CLI/CLI.hpp>

namespace acc::launcher {

/// `acc completion`: prints the script that completes acc in a shell. The other commands must be there
/// already.
void add_completion_command(CLI::App& app, int& code);

}  // namespace acc::launcher
