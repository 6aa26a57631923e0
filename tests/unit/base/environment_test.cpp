// SPDX-License-Identifier: Apache-2.0
#include "acc/base/environment.hpp"

#include <stdlib.h>
#include <unistd.h>

#include <utility>

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

TEST_CASE("environment: a name that begins as another is not the other", "[base]") {
  Environment environment{{"A_", "3"}, {"A", "1"}, {"A1", "2"}};
  CHECK(environment.get("A") == "1");
  CHECK(environment.get("A1") == "2");
  CHECK_FALSE(environment.contains(""));
  CHECK_FALSE(environment.contains("A="));
  environment.set("A", "x");
  environment.overlay({{"A1", "y"}, {"A0", "0"}});
  environment.erase("A_");
  environment.erase("A2");
  CHECK(environment == Environment{{"A", "x"}, {"A0", "0"}, {"A1", "y"}});
  CHECK(environment == Environment(environment.variables()));
  CHECK(Environment{{"B", "1"}, {"B", "2"}} == Environment{{"B", "2"}});
}

TEST_CASE("environment: of a variable that is there twice the first counts, as for getenv", "[base]") {
  char first[] = "TWICE=z";
  char second[] = "TWICE=a";
  char without_value[] = "NONE";
  char* variables[] = {first, without_value, second, nullptr};
  char** const before = std::exchange(environ, variables);
  const Environment environment = Environment::of_process();
  CHECK(environment.get("TWICE") == ::getenv("TWICE"));
  environ = before;
  CHECK(environment == Environment{{"TWICE", "z"}});
}

TEST_CASE("environment: the process's own variables are read, values with = whole", "[base]") {
  REQUIRE(::setenv("ACC_TEST_VARIABLE", "x=y z", 1) == 0);
  CHECK(Environment::of_process().find("ACC_TEST_VARIABLE") == "x=y z");
  ::unsetenv("ACC_TEST_VARIABLE");
  CHECK_FALSE(Environment::of_process().contains("ACC_TEST_VARIABLE"));
}

}  // namespace environment_test
