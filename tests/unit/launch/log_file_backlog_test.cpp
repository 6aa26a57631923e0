// SPDX-License-Identifier: Apache-2.0
#include "acc/launch/log_file.hpp"
#include "support/catch.hpp"

namespace log_file_backlog_test {

using namespace acc;
using namespace acc::launcher;

namespace {

// The text that would be written in the end.
std::string rest_of(Backlog& backlog) {
  std::string text(backlog.text());
  backlog.remove(backlog.size());
  return text;
}

}  // namespace

TEST_CASE("backlog: keeps text in order while parts of it are written", "[launch]") {
  Backlog backlog;
  backlog.add("one ");
  backlog.add("two ");
  backlog.remove(5);
  backlog.add("three");
  CHECK(backlog.size() == 8);
  CHECK(rest_of(backlog) == "wo three");
  CHECK(backlog.empty());
  CHECK(backlog.dropped_bytes() == 0);
}

TEST_CASE("backlog: text that does not fit is dropped and counted, in whole lines if possible", "[launch]") {
  Backlog backlog;
  backlog.add_or_drop("first\nsecond\n", 8);
  CHECK(backlog.text() == "first\n");
  backlog.add_or_drop("x", 8);  // the beginning of a line that will not fit
  backlog.add_or_drop("yyyyyyyyy\n", 8);
  CHECK(rest_of(backlog) == "first\nx");
  CHECK(backlog.dropped_bytes() == 17);
}

TEST_CASE("backlog: text after dropped text begins on a new line", "[launch]") {
  Backlog backlog;
  backlog.pass("begun ");
  backlog.add_or_drop("but too long", 8);
  backlog.add_or_drop("ends here\nnext\n", 8);
  CHECK(rest_of(backlog) == "\nnext\n");
  CHECK(backlog.dropped_bytes() == 22);
  backlog.add_or_drop("later\n", 8);
  CHECK(rest_of(backlog) == "later\n");
}

TEST_CASE("backlog: drop() counts as dropped", "[launch]") {
  Backlog backlog;
  backlog.add("abc");
  backlog.drop();
  CHECK(backlog.empty());
  CHECK(backlog.dropped_bytes() == 3);
}

}  // namespace log_file_backlog_test
