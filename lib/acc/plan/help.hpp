// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "acc/config/schema.hpp"
#include "acc/plan/command_line.hpp"

namespace acc::launcher {

/// What a help shows. The families of training (FSDP, DeepSpeed, ...) are left out of a short one.
struct HelpScope {
  /// Everything, each flag with its key in the config file and its variables.
  bool all = false;
  /// Families that are shown all the same, by the heading of their group.
  std::vector<std::string_view> families = {};
};

/// What was typed before `--help` asks for: `--use_fsdp --help` shows FSDP's flags too.
HelpScope help_scope(const CommandLine& command_line);

/// The help of `acc launch` or of `acc run`, made from the schema, wrapped at `width` columns.
std::string launch_help(Dialect dialect, std::string_view program, std::size_t width, const HelpScope& scope);

/// The headings of the flags that exist under these rules, in the order of the table.
std::vector<std::string_view> help_groups(Dialect dialect);

/// `--num_processes N`, `--module, -m`: the flags of a setting that exist here and what they take; empty:
/// none.
std::string flag_synopsis(const SettingSpec& spec, Dialect dialect);

/// The setting's sentence, its default, its key in the file and its variables.
std::string flag_description(const SettingSpec& spec);

}  // namespace acc::launcher
