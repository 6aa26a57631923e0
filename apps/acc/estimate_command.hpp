// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <CLI/CLI.hpp>

namespace acc::launcher {

/// `acc estimate-memory`: what a model needs of memory, from the heads of its files.
void add_estimate_command(CLI::App& app, int& code);

}  // namespace acc::launcher
