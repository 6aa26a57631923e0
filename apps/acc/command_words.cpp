// SPDX-License-Identifier: Apache-2.0
#include "command_words.hpp"

#include "templates.hpp"

namespace acc::launcher {
namespace {

CompletionCommand describe(const CLI::App& command) {
  CompletionCommand result{.name = command.get_name(), .help = command.get_description()};
  if (result.name == "launch") result.flags = completion_flags(Dialect::launch);
  if (result.name == "new") result.words = project_kinds();
  if (result.name == "run" || result.name == "torchrun") result.flags = completion_flags(Dialect::torchrun);
  for (const CLI::Option* option : command.get_options()) {
    for (const std::string& name : option->get_lnames())
      result.flags.push_back({.spelling = "--" + name,
                              .help = option->get_description(),
                              .takes_value = option->get_items_expected_max() > 0});
  }
  for (const CLI::App* inner : command.get_subcommands(nullptr)) result.words.push_back(inner->get_name());
  return result;
}

}  // namespace

std::vector<CompletionCommand> command_words(const CLI::App& app) {
  std::vector<CompletionCommand> commands;
  for (const CLI::App* command : app.get_subcommands(nullptr)) {
    if (!command->get_group().empty()) commands.push_back(describe(*command));
  }
  return commands;
}

}  // namespace acc::launcher
