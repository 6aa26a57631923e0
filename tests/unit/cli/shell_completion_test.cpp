// SPDX-License-Identifier: Apache-2.0
#include "acc/cli/shell_completion.hpp"

#include <algorithm>

#include "acc/plan/command_line.hpp"
#include "support/catch.hpp"

namespace shell_completion_test {

using acc::launcher::CompletionFlag;
using acc::launcher::Dialect;
using acc::launcher::Shell;

TEST_CASE("shell_completion: every flag of the table is offered, with its words", "[cli]") {
  const auto flags = acc::launcher::completion_flags(Dialect::launch);
  for (const acc::launcher::SettingSpec& spec : acc::launcher::schema()) {
    for (const acc::launcher::Flag& flag : spec.flags) {
      INFO(flag.spelling);
      const bool offered = std::ranges::find(flags, flag.spelling, &CompletionFlag::spelling) != flags.end();
      CHECK(offered == exists_in(flag, Dialect::launch));
    }
  }
  const auto precision = std::ranges::find(flags, "--mixed_precision", &CompletionFlag::spelling);
  CHECK(precision->words == std::vector<std::string>{"no", "fp16", "bf16", "fp8"});
  CHECK_FALSE(std::ranges::find(flags, "--multi_gpu", &CompletionFlag::spelling)->takes_value);
}

TEST_CASE("shell_completion: each shell's script names every command and flag", "[cli]") {
  const std::vector<acc::launcher::CompletionCommand> commands = {
      {.name = "launch",
       .help = "Starts it's workers",
       .flags = acc::launcher::completion_flags(Dialect::launch)},
      {.name = "config", .help = "Writes", .words = {"check", "show"}}};
  for (const Shell shell : {Shell::bash, Shell::zsh, Shell::fish, Shell::tcsh}) {
    const std::string script = acc::launcher::completion_script(shell, commands);
    for (const acc::launcher::CompletionFlag& flag : commands[0].flags) {
      INFO(flag.spelling);
      CHECK(script.find(flag.spelling.substr(flag.spelling.find_first_not_of('-'))) != std::string::npos);
    }
    CHECK(script.find("check") != std::string::npos);
  }
}

}  // namespace shell_completion_test
