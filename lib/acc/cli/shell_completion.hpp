// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "acc/config/schema.hpp"

namespace acc::launcher {

/// A flag as a shell completes it.
struct CompletionFlag {
  std::string spelling = {};
  std::string help = {};
  bool takes_value = false;
  /// The allowed values; empty: files.
  std::vector<std::string> words = {};

  bool operator==(const CompletionFlag&) const = default;
};

/// A command of acc as a shell completes it.
struct CompletionCommand {
  std::string name = {};
  std::string help = {};
  std::vector<CompletionFlag> flags = {};
  /// The allowed arguments instead of files: subcommands, names of shells.
  std::vector<std::string> words = {};

  bool operator==(const CompletionCommand&) const = default;
};

enum class Shell { bash, zsh, fish, tcsh };

/// The flags of `acc launch` or `acc run`, from the schema.
std::vector<CompletionFlag> completion_flags(Dialect dialect);

/// The script that completes `acc`, to be sourced in the shell.
std::string completion_script(Shell shell, const std::vector<CompletionCommand>& commands);

/// A script for bash, zsh or tcsh that completes the flags of `program` (`torchrun`, `acc run`); other words
/// complete as file names.
std::string completion(std::string_view shell, Dialect dialect, std::string_view program);

}  // namespace acc::launcher
