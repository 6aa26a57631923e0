// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "acc/cli/shell_completion.hpp"
#include "acc/config/schema.hpp"
#include "acc/plan/command_line.hpp"

namespace acc::launcher {

/// The parts of the help to show. The short help is a screen: examples, and the flags that most jobs need.
struct HelpScope {
  /// Show all flags, with their keys in config files and their variables.
  bool all = false;
  /// The families of training to add (FSDP, DeepSpeed, ...), by their headings.
  std::vector<std::string_view> families = {};
};

/// The scope for the flags before `--help`: `--use_fsdp --help` shows FSDP's flags too.
HelpScope help_scope(const CommandLine& command_line);

/// The help of `acc launch` or `acc run`, generated from the schema and wrapped at `width` columns.
std::string launch_help(Dialect dialect, std::string_view program, std::size_t width, const HelpScope& scope);

/// The headings of the flags of a dialect, in the order of the schema.
std::vector<std::string_view> help_groups(Dialect dialect);

/// The flags of a setting in a dialect with their arguments, as in `--num_processes N` or `--module, -m`;
/// may be empty.
std::string flag_synopsis(const SettingSpec& spec, Dialect dialect);

/// The help of the setting with its default, its key and its variables.
std::string flag_description(const SettingSpec& spec);

/// A row of the table of exit codes in the man pages and in apps/docs/reference.md.
struct ExitCodeMeaning {
  std::string_view code = {};
  std::string_view meaning = {};
};

/// The exit codes of `acc launch` and `acc run`.
std::span<const ExitCodeMeaning> exit_code_meanings();

/// The man page acc(1): the commands with their flags. launch and run have pages of their own.
std::string man_page(const std::vector<CompletionCommand>& commands, std::string_view version);

/// The man page acc-launch(1) or acc-run(1): all flags by group, with keys and variables, and the exit
/// codes.
std::string launch_man_page(Dialect dialect, std::string_view version);

}  // namespace acc::launcher
