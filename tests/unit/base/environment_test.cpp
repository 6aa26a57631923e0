// SPDX-License-Identifier: Apache-2.0
#include "acc/base/environment.hpp"

#include <stdlib.h>

#include "support/catch.hpp"

namespace environment_test {

using acc::Environment;

TEST_CASE("environment: an empty value differs from an unset one", "[base]") {
  const Environment environment{{"EMPTY", ""}, {"A", "1"}};
  CHECK(environment.find("EMPTY") == "");
  CHECK_FALSE(environment.find("MISSING").has_value());
  CHECK(environment.get("MISSING", "otherwise") == "otherwise");
  CHECK(environment.get("EMPTY", "otherwise").empty());
}

TEST_CASE("environment: an overlay replaces values and keeps the rest", "[base]") {
  Environment environment{{"A", "1"}, {"B", "2"}};
  environment.overlay(Environment{{"B", "3"}, {"C", "4"}});
  CHECK(environment == Environment{{"A", "1"}, {"B", "3"}, {"C", "4"}});
}

TEST_CASE("environment: variables are sorted, as for execve", "[base]") {
  CHECK(Environment{{"Z", "1"}, {"A", "b=c"}}.to_strings() == std::vector<std::string>{"A=b=c", "Z=1"});
}

TEST_CASE("environment: the process's own variables are read, values with = whole", "[base]") {
  REQUIRE(::setenv("ACC_TEST_VARIABLE", "x=y z", 1) == 0);
  CHECK(Environment::of_process().find("ACC_TEST_VARIABLE") == "x=y z");
  ::unsetenv("ACC_TEST_VARIABLE");
  CHECK_FALSE(Environment::of_process().contains("ACC_TEST_VARIABLE"));
}

}  // namespace environment_test
