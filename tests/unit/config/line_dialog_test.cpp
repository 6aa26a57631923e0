// SPDX-License-Identifier: Apache-2.0
#include "acc/config/line_dialog.hpp"

#include <sstream>

#include "support/catch.hpp"
#include "support/errors.hpp"

TEST_CASE("line_dialog: questions show their default, menus their numbers", "[config]") {
  std::istringstream in("a\n1\n");
  std::ostringstream out;
  acc::launcher::LineDialog dialog(in, out);
  CHECK(dialog.ask("Name?", "x") == "a");
  CHECK(dialog.ask_menu("Which?", {"p", "q"}, 1) == "1");
  dialog.say("done");
  CHECK(out.str() == "Name? [x] \nWhich?\n  0) p\n  1) q\nNumber or text [q] \ndone\n");
}

TEST_CASE("line_dialog: the last line needs no end, and then the input has ended", "[config]") {
  std::istringstream in("last");
  std::ostringstream out;
  acc::launcher::LineDialog dialog(in, out);
  CHECK(dialog.ask("A?", "") == "last");
  CHECK(acc::test::error_of([&] { dialog.ask("B?", ""); }) == "the input ended");
}
