// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <CLI/CLI.hpp>
#include <vector>

#include "acc/cli/shell_completion.hpp"

namespace acc::launcher {

/// The visible commands with their flags: those of launch and run from the schema, the others from CLI11.
std::vector<CompletionCommand> command_words(const CLI::App& app);

}  // namespace acc::launcher
