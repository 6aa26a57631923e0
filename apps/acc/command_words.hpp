// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <CLI/CLI.hpp>
#include <vector>

#include "acc/plan/shell_completion.hpp"

namespace acc::launcher {

/// The commands that are shown, with their flags and words: launch and run read theirs by the table, the
/// others by CLI11.
std::vector<CompletionCommand> command_words(const CLI::App& app);

}  // namespace acc::launcher
