// SPDX-License-Identifier: Apache-2.0
#include "acc/base/home.hpp"

#include "support/catch.hpp"

namespace home_test {

using acc::Environment;
using acc::expand_home;

TEST_CASE("home: without HOME the user database is used", "[base]") {
  CHECK(expand_home("~/x", {}).is_absolute());
}

TEST_CASE("home: only a ~ at the beginning is expanded", "[base]") {
  const Environment environment{{"HOME", "/home/u"}};
  CHECK(expand_home("~", environment) == "/home/u");
  CHECK(expand_home("~/b", environment) == "/home/u/b");
  CHECK(expand_home("a/~/b", environment) == "a/~/b");
  CHECK(expand_home("~other/b", environment) == "~other/b");
}

}  // namespace home_test
