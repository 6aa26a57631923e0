// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "acc/config/schema.hpp"

namespace acc::launcher {

/// A flag as a shell completes it.
struct CompletionFlag {
  std::string spelling = {};
  std::string help = {};
  bool takes_value = false;
  /// The words that it takes; empty: files.
  std::vector<std::string> words = {};

  bool operator==(const CompletionFlag&) const = default;
};

/// A command of acc as a shell completes it.
struct CompletionCommand {
  std::string name = {};
  std::string help = {};
  std::vector<CompletionFlag> flags = {};
  /// What may stand behind it instead of a file: its own commands, the names of shells.
  std::vector<std::string> words = {};

  bool operator==(const CompletionCommand&) const = default;
};

enum class Shell { bash, zsh, fish };

/// The flags of `acc launch` or `acc run`, from the table.
std::vector<CompletionFlag> completion_flags(Dialect dialect);

/// The script that completes `acc` in a shell, to be sourced there.
std::string completion_script(Shell shell, const std::vector<CompletionCommand>& commands);

}  // namespace acc::launcher
