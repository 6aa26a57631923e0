// SPDX-License-Identifier: Apache-2.0
#include "completion_command.hpp"

#include <fmt/format.h>

#include <map>
#include <memory>
#include <string>

#include "acc/plan/completion.hpp"

namespace acc {
namespace {

const std::map<std::string, Shell> kShells = {
    {"bash", Shell::bash}, {"zsh", Shell::zsh}, {"fish", Shell::fish}};

CompletionCommand describe(const CLI::App& command) {
  CompletionCommand result{.name = command.get_name(), .help = command.get_description()};
  // These two read their flags by the table, not by CLI11.
  if (result.name == "launch") result.flags = completion_flags(Dialect::launch);
  if (result.name == "run") result.flags = completion_flags(Dialect::torchrun);
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

void add_completion_command(CLI::App& app, int& code) {
  const auto shell = std::make_shared<std::string>();
  CLI::App* command = app.add_subcommand("completion", "Print the script that completes acc in a shell");
  command->add_option("shell", *shell, "bash, zsh or fish")->required()->check(CLI::IsMember(kShells));
  command->callback([shell, &app, &code] {
    std::vector<CompletionCommand> commands;
    for (const CLI::App* other : app.get_subcommands(nullptr)) {
      commands.push_back(describe(*other));
      if (other->get_name() != "completion") continue;
      for (const auto& [name, value] : kShells) commands.back().words.push_back(name);
    }
    fmt::print("{}", completion_script(kShells.at(*shell), commands));
    code = 0;
  });
}

}  // namespace acc
