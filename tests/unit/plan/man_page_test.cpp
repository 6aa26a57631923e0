// SPDX-License-Identifier: Apache-2.0
#include "acc/plan/man_page.hpp"

#include "acc/base/text.hpp"
#include "acc/plan/command_line.hpp"
#include "acc/plan/exit_codes.hpp"
#include "support/catch.hpp"

using acc::launcher::Dialect;

namespace {

std::string in_troff(std::string_view text) {
  std::string result;
  for (const char c : text) result += c == '-' ? std::string("\\-") : std::string(1, c);
  return result;
}

}  // namespace

TEST_CASE("man_page: every flag of the table has its paragraph", "[plan]") {
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

TEST_CASE("man_page: only known requests begin lines, so no text is lost", "[plan]") {
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

TEST_CASE("man_page: every exit code has its paragraph", "[plan]") {
  const std::string page = acc::launcher::launch_man_page(Dialect::launch, "1");
  for (const acc::launcher::ExitCodeMeaning& row : acc::launcher::exit_code_meanings()) {
    INFO(row.code);
    CHECK(page.find(".B " + std::string(row.code) + "\n") != std::string::npos);
  }
  CHECK(page.find("\n.B 124\n") != std::string::npos);
}
