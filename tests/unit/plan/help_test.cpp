// SPDX-License-Identifier: Apache-2.0
#include "acc/plan/help.hpp"

#include "acc/base/text.hpp"
#include "support/catch.hpp"

using acc::launcher::Dialect;
using acc::launcher::HelpScope;
using acc::launcher::launch_help;

namespace {

bool shows(const std::string& help, std::string_view spelling) {
  const std::string text(spelling);
  return help.find("  " + text) != std::string::npos || help.find(", " + text) != std::string::npos;
}

HelpScope scope_of(const std::vector<std::string>& words) {
  return help_scope(acc::launcher::parse_command_line(words, Dialect::launch));
}

}  // namespace

TEST_CASE("help: --help-all shows every flag of its dialect and no other", "[plan]") {
  for (const Dialect dialect : {Dialect::launch, Dialect::torchrun}) {
    const std::string help = launch_help(dialect, "acc", 100, {.all = true});
    for (const acc::launcher::SettingSpec& spec : acc::launcher::schema()) {
      for (const acc::launcher::Flag& flag : spec.flags) {
        INFO(flag.spelling);
        CHECK(shows(help, flag.spelling) == exists_in(flag, dialect));
      }
    }
  }
}

TEST_CASE("help: --help-all tells keys and variables", "[plan]") {
  const std::string help = launch_help(Dialect::launch, "acc", 1000, {.all = true});
  CHECK(
      help.find("Version of FSDP. Default: 1. [key fsdp_config.fsdp_version; workers see FSDP_VERSION]\n") !=
      std::string::npos);
  CHECK(help.find("[key machine_rank; variable PET_NODE_RANK]\n") != std::string::npos);
}

TEST_CASE("help: a short help leaves the families out, and says how to see them", "[plan]") {
  const std::string help = launch_help(Dialect::launch, "acc", 100, scope_of({"--help"}));
  CHECK(shows(help, "--num_processes"));
  CHECK(shows(help, "--use_fsdp"));
  CHECK_FALSE(shows(help, "--fsdp_version"));
  CHECK(help.find("--help-all shows keys and variables, and the flags of torch.compile (dynamo), FSDP,") !=
        std::string::npos);
}

TEST_CASE("help: what is typed before --help shows its family", "[plan]") {
  CHECK(
      shows(launch_help(Dialect::launch, "acc", 100, scope_of({"--use_fsdp", "--help"})), "--fsdp_version"));
  CHECK(shows(launch_help(Dialect::launch, "acc", 100, scope_of({"--zero_stage", "2", "-h"})),
              "--deepspeed_hostfile"));
  CHECK(scope_of({"--help-all"}).all);
  CHECK(scope_of({"--help_all"}).all);
}

TEST_CASE("help: fits the width", "[plan]") {
  for (const bool all : {false, true}) {
    for (const std::string& line :
         acc::split(launch_help(Dialect::launch, "acc launch", 80, {.all = all}), '\n')) {
      // A variable may be longer than what is left of a line.
      if (line.find_first_of(' ', line.find_first_not_of(' ')) == std::string::npos) continue;
      INFO(line);
      CHECK(line.size() <= 80);
    }
  }
}
