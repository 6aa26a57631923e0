// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <map>
#include <memory>
#include <string>

#include "acc/cli/shell_completion.hpp"
#include "command_words.hpp"
#include "commands.hpp"

namespace acc::launcher {
namespace {

std::map<std::string, Shell> shells() {
  return {{"bash", Shell::bash}, {"zsh", Shell::zsh}, {"fish", Shell::fish}, {"tcsh", Shell::tcsh}};
}

}  // namespace

void add_completion_command(CLI::App& app, int& code) {
  const auto shell = std::make_shared<std::string>();
  CLI::App* command = app.add_subcommand("completion", "Print the completion script for a shell");
  command->add_option("shell", *shell, "bash, zsh, fish or tcsh")->required()->check(CLI::IsMember(shells()));
  command->callback([shell, &app, &code] {
    std::vector<CompletionCommand> commands = command_words(app);
    const auto self = std::ranges::find(commands, "completion", &CompletionCommand::name);
    for (const auto& [name, value] : shells()) self->words.push_back(name);
    fmt::print("{}", completion_script(shells().at(*shell), commands));
    code = 0;
  });
}

}  // namespace acc::launcher
