// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "acc/config/schema.hpp"
#include "acc/plan/settings.hpp"

namespace acc::launcher {

/// A flag as it was typed: `--nnodes 2`, `--nnodes=2`, `-r3`.
struct TypedFlag {
  SettingId setting = {};
  std::vector<std::string> words = {};

  bool operator==(const TypedFlag&) const = default;
};

/// The parsed command line of `acc launch` or `acc run`.
struct CommandLine {
  /// The origin of each is the flag as the user spelled it.
  SettingMap flags = {};
  /// All flags in their order, also those that later ones override.
  std::vector<TypedFlag> typed = {};
  /// The program and its arguments, unchanged.
  std::vector<std::string> program = {};
  /// The switch right before the program, with no `--` between them; empty: there is none. Some people give a
  /// switch a value: `--cpu true train.py`.
  std::string switch_before_program = {};
  bool help = false;
  bool help_all = false;
  bool version = false;

  bool operator==(const CommandLine&) const = default;
};

/// Parses options up to the first other word, which is the program. The grammar is that of Python's
/// argparse, as in accelerate and torchrun: `--x V`, `--x=V`, `-rV`, `-mr3`; the last occurrence wins; `-`
/// and `_` are interchangeable. Under torchrun's rules unambiguous abbreviations are accepted, and one `--`
/// right after the program is dropped. Throws Error{usage} with the flag, and the nearest known one if it
/// is unknown.
CommandLine parse_command_line(const std::vector<std::string>& words, Dialect dialect);

/// Parses `text` as a value of the setting. Throws Error{usage} with `where` if it is invalid.
Value parse_setting(const SettingSpec& spec, std::string_view text, const std::string& where);

/// All spellings of a flag, for messages: `--nproc-per-node/--nproc_per_node`.
std::string spellings(const Flag& flag);

/// Whether the flag exists in the dialect.
bool exists_in(const Flag& flag, Dialect dialect);

}  // namespace acc::launcher
