// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <CLI/CLI.hpp>

namespace acc::launcher {

/// `acc config` and what stands below it. Each command sets `code`, the exit code, when it ran.
void add_config_command(CLI::App& app, int& code);

}  // namespace acc::launcher
