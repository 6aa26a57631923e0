// SPDX-License-Identifier: Apache-2.0
#include "acc/runtime/trainer/named_options.hpp"

#include "support/catch.hpp"
#include "support/errors.hpp"

namespace named_options_test {

using acc::detail::NamedOptions;
using acc::test::error_of;

TEST_CASE("named_options: an option that nobody takes is named", "[runtime]") {
  NamedOptions options({{"power", 2}, {"cycles", 3}}, "kwargs");
  CHECK(options.take("power", 1) == 2);
  CHECK(options.take("power", 1) == 1);
  CHECK(error_of([&] { options.require_empty(); }) == "kwargs: does not take 'cycles'");
  CHECK(options.take("cycles", 1) == 3);
  options.require_empty();
}

TEST_CASE("named_options: a number outside of its range is named", "[runtime]") {
  NamedOptions options({{"power", -2}}, "kwargs");
  CHECK(error_of([&] { options.take("power", 1, acc::detail::Range::positive); }) ==
        "kwargs: power: must be greater than 0");
}

TEST_CASE("named_options: a word is one of those that are known", "[runtime]") {
  NamedOptions options({{"shape", "line"}, {"other", "circle"}, {"third", "square"}, {"power", 2}}, "kwargs");
  const auto take = [&](const char* name) {
    return options.take_choice<int>(name, {{"line", 1}, {"wave", 2}}, 2);
  };
  CHECK(take("shape") == 1);
  CHECK(take("none") == 2);
  CHECK(error_of([&] { take("other"); }) ==
        "kwargs: other: 'circle' is not one of its values (use one of line, wave)");
  CHECK(error_of([&] { options.take("third"); }) == "kwargs: third: 'square' is not a number");
  CHECK(error_of([&] { take("power"); }) == "kwargs: power: is a number");
  CHECK(error_of([&] { options.take_required("steps"); }) == "kwargs: needs 'steps'");
}

TEST_CASE("named_options: they are parsed from a text, and what is none is named", "[runtime]") {
  const auto parsed = [](const char* text) { return NamedOptions::parse(text, "args"); };
  CHECK(parsed("momentum=0.9,nesterov=1").take("nesterov", 0) == 1);
  CHECK(parsed("momentum=0.9,").take("momentum", 0) == 0.9);
  CHECK(parsed("momentum=+.9").take("momentum", 0) == 0.9);
  parsed("").require_empty();
  CHECK(error_of([&] { parsed("momentum"); }) == "args: 'momentum' is not name=number");
  CHECK(error_of([&] { parsed("momentum=much"); }) == "args: 'momentum=much' is not name=number");
  CHECK(error_of([&] { parsed("a=1,,b=2"); }) == "args: '' is not name=number");
}

}  // namespace named_options_test
