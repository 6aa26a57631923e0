// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <CLI/CLI.hpp>

namespace acc::launcher {

/// `acc env`. Sets `code`, the exit code, when it ran.
void add_env_command(CLI::App& app, int& code);

}  // namespace acc::launcher
