// SPDX-License-Identifier: Apache-2.0
#include "acc/base/stat_line.hpp"

#include <unistd.h>

#include <string>
#include <string_view>

#include "support/catch.hpp"

namespace stat_line_test {

using namespace acc;

TEST_CASE("stat_line: a name may contain spaces and parentheses", "[base]") {
  const auto line = parse_stat_line("11 (a) 3 (b)) R 10 7 8\n");
  REQUIRE(line);
  CHECK(line->pid == "11");
  CHECK(line->name == "a) 3 (b)");
  CHECK(line->fields == "R 10 7 8");
}

TEST_CASE("stat_line: fields have the numbers of proc(5)", "[base]") {
  const auto line = parse_stat_line("11 (a b) R 10 7 8");
  REQUIRE(line);
  CHECK(line->field(3) == "R");
  CHECK(line->field(4) == "10");
  CHECK(line->field(6) == "8");
  CHECK(line->field(7).empty());
  CHECK(line->field(22).empty());
}

TEST_CASE("stat_line: what is not such a line is refused", "[base]") {
  const std::string_view text = GENERATE("", "11", "11 (a", "11 a) R", ")(");
  CHECK_FALSE(parse_stat_line(text));
}

TEST_CASE("stat_line: a line that ends after the name has no fields", "[base]") {
  const auto line = parse_stat_line("11 (a)");
  REQUIRE(line);
  CHECK(line->field(3).empty());
}

TEST_CASE("process_start: of a process, and of none", "[base]") {
  CHECK(process_start("self") > 0);
  CHECK(process_start("self") == process_start(std::to_string(::getpid())));
  CHECK(process_start("no such process") == 0);
}

}  // namespace stat_line_test
