// SPDX-License-Identifier: Apache-2.0
#include "acc/cli/help.hpp"

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>

#include "acc/base/text.hpp"
#include "acc/cli/shell_completion.hpp"
#include "acc/plan/command_line.hpp"
#include "support/catch.hpp"

namespace help_test {

using acc::launcher::Dialect;
using acc::launcher::HelpScope;
using acc::launcher::launch_help;
using acc::launcher::SettingSpec;

namespace {

bool shows(const std::string& help, std::string_view spelling) {
  const std::string text(spelling);
  return help.find("  " + text) != std::string::npos || help.find(", " + text) != std::string::npos;
}

HelpScope scope_of(const std::vector<std::string>& words) {
  return help_scope(acc::launcher::parse_command_line(words, Dialect::launch));
}

}  // namespace

TEST_CASE("help: --help-all shows every flag of its dialect and no other", "[cli]") {
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

TEST_CASE("help: --help-all shows keys and variables", "[cli]") {
  const std::string help = launch_help(Dialect::launch, "acc", 1000, {.all = true});
  CHECK(
      help.find("Version of FSDP. Default: 1. [key fsdp_config.fsdp_version; workers see FSDP_VERSION]\n") !=
      std::string::npos);
  CHECK(help.find("[key machine_rank; variable PET_NODE_RANK]\n") != std::string::npos);
  CHECK(help.find("[variable ACC_ENGINE]\n") != std::string::npos);
}

TEST_CASE("help: the short help is a screen with examples and the flags that most jobs need", "[cli]") {
  for (const Dialect dialect : {Dialect::launch, Dialect::torchrun}) {
    const std::string help = launch_help(dialect, "acc launch", 100, {});
    CHECK(std::ranges::count(help, '\n') <= 45);
    CHECK(help.find("\nExamples:\n  acc launch ") != std::string::npos);
    CHECK(help.find("--help-all shows all flags") != std::string::npos);
    CHECK(shows(help, "--max-restarts"));
    CHECK_FALSE(shows(help, "--redirects"));
    CHECK(shows(help, "--num_processes") == (dialect == Dialect::launch));
  }
  CHECK_FALSE(shows(launch_help(Dialect::launch, "acc", 100, {}), "--fsdp_version"));
}

TEST_CASE("help: flags before --help show their family", "[cli]") {
  CHECK(
      shows(launch_help(Dialect::launch, "acc", 100, scope_of({"--use_fsdp", "--help"})), "--fsdp_version"));
  CHECK(shows(launch_help(Dialect::launch, "acc", 100, scope_of({"--zero_stage", "2", "-h"})),
              "--deepspeed_hostfile"));
  CHECK(scope_of({"--help-all"}).all);
  CHECK(scope_of({"--help_all"}).all);
}

TEST_CASE("help: fits the width", "[cli]") {
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

TEST_CASE("table: every flag is in the help and in the completion", "[cli]") {
  const std::string help = launch_help(Dialect::launch, "acc launch", 100, {.all = true});
  std::string page = launch_man_page(Dialect::launch, "1");
  std::erase(page, '\\');
  const auto flags = acc::launcher::completion_flags(Dialect::launch);
  for (const SettingSpec& spec : acc::launcher::schema()) {
    for (const acc::launcher::Flag& flag : spec.flags) {
      if (!exists_in(flag, Dialect::launch)) continue;
      INFO(flag.spelling);
      CHECK(help.find(flag.spelling) != std::string::npos);
      CHECK(std::ranges::find(flags, flag.spelling, &acc::launcher::CompletionFlag::spelling) != flags.end());
      CHECK(page.find(flag_synopsis(spec, Dialect::launch)) != std::string::npos);
    }
  }
}

namespace {

std::string in_troff(std::string_view text) {
  std::string result;
  for (const char c : text) result += c == '-' ? std::string("\\-") : std::string(1, c);
  return result;
}

}  // namespace

TEST_CASE("man_page: every flag of the table has its paragraph", "[cli]") {
  for (const Dialect dialect : {Dialect::launch, Dialect::torchrun}) {
    const std::string page = acc::launcher::launch_man_page(dialect, "1.2.3");
    for (const acc::launcher::SettingSpec& spec : acc::launcher::schema()) {
      for (const acc::launcher::Flag& flag : spec.flags) {
        INFO(flag.spelling);
        const bool shown = page.find(".B " + in_troff(flag.spelling)) != std::string::npos ||
                           page.find(", " + in_troff(flag.spelling)) != std::string::npos;
        CHECK(shown == exists_in(flag, dialect));
      }
    }
  }
}

TEST_CASE("man_page: only known requests begin lines, so no text is lost", "[cli]") {
  const std::vector<acc::launcher::CompletionCommand> commands = {
      {.name = "odd",
       .help = ".hidden \\ file",
       .flags = {{.spelling = "--x", .help = "'quoted'"}},
       .words = {"y"}}};
  const std::string pages =
      acc::launcher::launch_man_page(Dialect::launch, "1") + acc::launcher::man_page(commands, "1");
  for (const std::string& line : acc::split(pages, '\n')) {
    if (!line.starts_with('.') && !line.starts_with('\'')) continue;
    INFO(line);
    const std::string request = line.substr(0, line.find(' '));
    CHECK((request == ".TH" || request == ".SH" || request == ".SS" || request == ".TP" || request == ".B" ||
           request == ".I" || request == ".BR" || request == ".RS" || request == ".RE"));
  }
  CHECK(pages.find("\\&.hidden \\e file.") != std::string::npos);
}

TEST_CASE("man_page: every exit code has its paragraph", "[cli]") {
  const std::string page = acc::launcher::launch_man_page(Dialect::launch, "1");
  for (const acc::launcher::ExitCodeMeaning& row : acc::launcher::exit_code_meanings()) {
    INFO(row.code);
    CHECK(page.find(".B " + std::string(row.code) + "\n") != std::string::npos);
  }
  CHECK(page.find("\n.B 124\n") != std::string::npos);
}

TEST_CASE("exit_codes: the reference has the same table", "[cli]") {
  std::ifstream file(std::filesystem::path(ACC_TEST_DATA) / "../../apps/docs/reference.md");
  std::string text((std::istreambuf_iterator<char>(file)), std::istreambuf_iterator<char>());
  std::erase(text, '`');
  for (const acc::launcher::ExitCodeMeaning& row : acc::launcher::exit_code_meanings()) {
    INFO(row.code);
    CHECK(text.find("\n| " + std::string(row.code) + " | " + std::string(row.meaning) + " |\n") !=
          std::string::npos);
  }
}

}  // namespace help_test
