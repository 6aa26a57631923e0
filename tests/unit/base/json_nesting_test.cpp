// SPDX-License-Identifier: Apache-2.0
#include "acc/base/json_nesting.hpp"

#include <string>

#include "support/catch.hpp"

namespace json_nesting_test {

TEST_CASE("json_nesting: JSON that is nested too deeply is known before it is parsed", "[base]") {
  using acc::is_deeply_nested;
  CHECK_FALSE(is_deeply_nested(""));
  CHECK_FALSE(is_deeply_nested(std::string(100, '[') + std::string(100, ']')));
  CHECK(is_deeply_nested(std::string(101, '[')));
  std::string objects;
  for (int i = 0; i < 101; ++i) objects += R"({"a":)";
  CHECK(is_deeply_nested(objects));
  // Neither what is beside each other nor what is in strings.
  std::string beside;
  for (int i = 0; i < 1000; ++i) beside += "[{}],";
  CHECK_FALSE(is_deeply_nested(beside));
  CHECK_FALSE(is_deeply_nested('"' + std::string(1000, '[') + R"(\"[[")"));
}

}  // namespace json_nesting_test
