// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <CLI/CLI.hpp>

namespace acc::launcher {

/// `acc merge-weights`: makes one safetensors file of many.
void add_merge_command(CLI::App& app, int& code);

}  // namespace acc::launcher
