// SPDX-License-Identifier: Apache-2.0
#include "acc/runtime/trainer/named_numbers.hpp"

#include "support/catch.hpp"
#include "support/errors.hpp"

namespace named_numbers_test {

using acc::detail::NamedNumbers;
using acc::test::error_of;

TEST_CASE("named_numbers: a number that nobody takes is named", "[runtime]") {
  NamedNumbers numbers({{"power", 2}, {"cycles", 3}}, "kwargs");
  CHECK(numbers.take("power", 1) == 2);
  CHECK(numbers.take("power", 1) == 1);
  CHECK(error_of([&] { numbers.require_empty(); }) == "kwargs: does not take 'cycles'");
  CHECK(numbers.take("cycles", 1) == 3);
  numbers.require_empty();
}

TEST_CASE("named_numbers: they are parsed from a text, and what is none is named", "[runtime]") {
  const auto parsed = [](const char* text) { return NamedNumbers::parse(text, "args"); };
  CHECK(parsed("momentum=0.9,nesterov=1").take("nesterov", 0) == 1);
  CHECK(parsed("momentum=0.9,").take("momentum", 0) == 0.9);
  parsed("").require_empty();
  CHECK(error_of([&] { parsed("momentum"); }) == "args: 'momentum' is not name=number");
  CHECK(error_of([&] { parsed("momentum=much"); }) == "args: 'momentum=much' is not name=number");
  CHECK(error_of([&] { parsed("a=1,,b=2"); }) == "args: '' is not name=number");
}

}  // namespace named_numbers_test
