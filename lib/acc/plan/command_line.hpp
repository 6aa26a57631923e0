// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "acc/config/schema.hpp"
#include "acc/plan/setting.hpp"

namespace acc::launcher {

/// What was typed after `acc launch` or `acc run`.
struct CommandLine {
  /// By setting name; the origin is the spelling that was typed.
  std::map<std::string, Setting, std::less<>> flags = {};
  /// The program and its arguments, untouched.
  std::vector<std::string> program = {};
  bool help = false;
  bool help_all = false;
  bool version = false;

  bool operator==(const CommandLine&) const = default;
};

/// Splits the words at the first one that is not an option. Grammar of Python's argparse, as both peers have
/// it: `--x V`, `--x=V`, `-rV`, `-mr3`, the last one wins, `-` and `_` alike. Under torchrun's rules any
/// unambiguous beginning of a flag is enough, and one `--` right after the program is dropped.
/// Throws Error{usage} naming the flag, and the nearest one where it is unknown.
CommandLine parse_command_line(const std::vector<std::string>& words, Dialect dialect);

/// `text` as a value of the setting: a number, a truth value, one of the allowed words.
/// Throws Error{usage} with `where` when it is none.
Value parse_setting(const SettingSpec& spec, std::string_view text, const std::string& where);

/// `--nproc-per-node/--nproc_per_node`: a flag in all its spellings, for messages and help.
std::string spellings(const Flag& flag);

/// Whether the flag exists under these rules.
bool exists_in(const Flag& flag, Dialect dialect);

}  // namespace acc::launcher
