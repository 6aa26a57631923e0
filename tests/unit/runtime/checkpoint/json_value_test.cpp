// SPDX-License-Identifier: Apache-2.0
#include "acc/runtime/checkpoint/json_value.hpp"

#include <limits>

#include "support/catch.hpp"
#include "support/errors.hpp"
#include "support/torch_tensor.hpp"

TEST_CASE("json value: what JSON can say comes back as it was", "[runtime]") {
  const std::string text =
      R"({"b":true,"a":null,"i":-5,"r":0.1,"t":"x","l":[1,[2.5]],"o":{"k":9007199254740993}})";
  CHECK(acc::to_json(acc::from_json(text)) == text);
}

TEST_CASE("json value: what JSON cannot say is null", "[runtime]") {
  const acc::PtValue value = acc::PtDict{{"inf", std::numeric_limits<double>::infinity()},
                                         {"object", acc::PtObject{"m.C"}},
                                         {"one", acc::test::numbers({2.5}, {}, at::kDouble)},
                                         {"many", acc::test::numbers({1, 2}, {2}, at::kFloat)},
                                         {7, "no text"},
                                         {"tuple", acc::PtTuple{{1}}}};
  CHECK(acc::to_json(value) == R"({"inf":null,"object":null,"one":2.5,"many":null,"tuple":[1]})");
}

TEST_CASE("json value: text that is no JSON is an error", "[runtime]") {
  CHECK(acc::test::error_of([] { acc::from_json("{"); }) == "checkpoint state: is no JSON");
}
