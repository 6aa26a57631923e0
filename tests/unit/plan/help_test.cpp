// SPDX-License-Identifier: Apache-2.0
#include "acc/plan/help.hpp"

#include "acc/base/text.hpp"
#include "acc/plan/command_line.hpp"
#include "support/catch.hpp"

using acc::Dialect;
using acc::launch_help;

TEST_CASE("help: shows every flag of its dialect and no other", "[plan]") {
  for (const Dialect dialect : {Dialect::launch, Dialect::torchrun}) {
    const std::string help = launch_help(dialect, "acc", 100);
    for (const acc::SettingSpec& spec : acc::schema()) {
      for (const acc::Flag& flag : spec.flags) {
        const std::string spelling(flag.spelling);
        const bool shown = help.find("  " + spelling) != std::string::npos ||
                           help.find(", " + spelling) != std::string::npos;
        INFO(spelling);
        CHECK(shown == exists_in(flag, dialect));
      }
    }
  }
}

TEST_CASE("help: fits the width", "[plan]") {
  for (const std::string& line : acc::split(launch_help(Dialect::launch, "acc launch", 80), '\n')) {
    INFO(line);
    CHECK(line.size() <= 80);
  }
}
