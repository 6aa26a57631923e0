// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <memory>
#include <string>

#include "acc/cli/help.hpp"
#include "acc/config/settings_table.hpp"
#include "command_words.hpp"
#include "commands.hpp"

namespace acc::launcher {

void add_man_command(CLI::App& app, int& code) {
  const auto page = std::make_shared<std::string>();
  CLI::App* command = app.add_subcommand("man", "Print a man page, or the table of settings");
  command->group("");  // for the build and for scripts/tables only
  command->add_option("page", *page, "acc, acc-launch, acc-run or settings")
      ->required()
      ->check(CLI::IsMember({"acc", "acc-launch", "acc-run", "settings"}));
  command->callback([page, &app, &code] {
    if (*page == "acc") fmt::print("{}", man_page(command_words(app), ACC_VERSION));
    if (*page == "acc-launch") fmt::print("{}", launch_man_page(Dialect::launch, ACC_VERSION));
    if (*page == "acc-run") fmt::print("{}", launch_man_page(Dialect::torchrun, ACC_VERSION));
    if (*page == "settings") fmt::print("{}\n", settings_table().dump(1));
    code = 0;
  });
}

}  // namespace acc::launcher
