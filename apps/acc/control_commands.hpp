// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <CLI/CLI.hpp>

namespace acc::launcher {

/// `acc ps`, `acc stop` and `acc logs`. Each sets `code`, the exit code, when it ran.
void add_ps_command(CLI::App& app, int& code);
void add_stop_command(CLI::App& app, int& code);
void add_logs_command(CLI::App& app, int& code);

}  // namespace acc::launcher
