// SPDX-License-Identifier: Apache-2.0
#include "acc/base/home.hpp"

#include <pwd.h>

#include <string>

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
}

TEST_CASE("home: a ~ with a name is that user's folder, if there is such a user", "[base]") {
  const Environment environment{{"HOME", "/home/u"}};
  const passwd* root = ::getpwuid(0);
  REQUIRE(root != nullptr);
  const std::string name = std::string("~") + root->pw_name;
  CHECK(expand_home(name, environment) == root->pw_dir);
  CHECK(expand_home(name + "/b", environment) == std::string(root->pw_dir) + "/b");
  CHECK(expand_home("~no such user/b", environment) == "~no such user/b");
}

TEST_CASE("home: an empty HOME is the root, as in Python", "[base]") {
  for (const char* home : {"", "/", "//"}) {
    const Environment environment{{"HOME", home}};
    CHECK(expand_home("~", environment) == "/");
    CHECK(expand_home("~/b", environment) == "/b");
  }
}

}  // namespace home_test
