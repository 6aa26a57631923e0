// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <CLI/CLI.hpp>
#include <string>
#include <vector>

#include "acc/base/error.hpp"

namespace acc::launcher {

/// Gives --version to the app and to each of its commands: CLI11 does not inherit it.
void add_version_flag(CLI::App& app);

/// Refuses an empty name of a file or folder, as "$OUT" is without such a variable: it would be taken for one
/// that was not given. Returns the option.
CLI::Option* refuse_empty(CLI::Option* option, const std::string& hint = "name a file");

/// Parses the words, and runs the command that they name. Throws CLI::ParseError.
void parse_words(CLI::App& app, const std::vector<std::string>& words);

/// What CLI11 could not parse, with the nearest option for a misspelt one.
Error usage_error(const CLI::App& app, const std::vector<std::string>& words, const CLI::ParseError& error);

/// The words with options that are abbreviated as Python's argparse allows it written out.
std::vector<std::string> with_whole_options(const CLI::App& app, std::vector<std::string> words);

}  // namespace acc::launcher
