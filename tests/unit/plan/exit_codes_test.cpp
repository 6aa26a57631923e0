// SPDX-License-Identifier: Apache-2.0
#include "acc/plan/exit_codes.hpp"

#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>

#include "support/catch.hpp"

TEST_CASE("exit_codes: lib/README.md has the same table", "[plan]") {
  std::ifstream file(std::filesystem::path(ACC_TEST_DATA) / "../../lib/README.md");
  std::string text((std::istreambuf_iterator<char>(file)), std::istreambuf_iterator<char>());
  std::erase(text, '`');
  for (const acc::launcher::ExitCodeMeaning& row : acc::launcher::exit_code_meanings()) {
    INFO(row.code);
    CHECK(text.find("\n| " + std::string(row.code) + " | " + std::string(row.meaning) + " |\n") !=
          std::string::npos);
  }
}
