// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <CLI/CLI.hpp>

namespace acc::launcher {

/// `acc man`: prints a man page, for the build. The other commands must be there already.
void add_man_command(CLI::App& app, int& code);

}  // namespace acc::launcher
