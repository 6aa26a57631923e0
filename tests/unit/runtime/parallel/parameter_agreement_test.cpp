// SPDX-License-Identifier: Apache-2.0
#include "acc/runtime/parallel/parameter_agreement.hpp"

#include "support/catch.hpp"

namespace parameter_agreement_test {

namespace {

using Parameters = std::vector<acc::detail::ParameterInfo>;

const Parameters kNet = {{"fc.weight", "Float [4, 2]"}, {"fc.bias", "Float [4]"}};

}  // namespace

TEST_CASE("parameter_agreement: equal models agree", "[runtime]") {
  CHECK_FALSE(acc::detail::find_disagreement({kNet, kNet, kNet}).has_value());
  CHECK_FALSE(acc::detail::find_disagreement({{}, {}}).has_value());
}

TEST_CASE("parameter_agreement: the first parameter that differs is named with both forms", "[runtime]") {
  Parameters other = kNet;
  other[0].form = "Float [5, 2]";
  other[1].form = "Float [5]";
  const auto error = acc::detail::find_disagreement({kNet, kNet, other});
  REQUIRE(error.has_value());
  CHECK(error->problems().front().where == "parameter 'fc.weight'");
  CHECK(error->problems().front().what ==
        "is not the same on all processes: rank 0 has 'fc.weight' of Float [4, 2], "
        "rank 2 has 'fc.weight' of Float [5, 2]");
}

TEST_CASE("parameter_agreement: a parameter that is missing on one rank is named", "[runtime]") {
  const Parameters shorter = {kNet[0]};
  for (const auto& by_rank : {std::vector{kNet, shorter}, std::vector{shorter, kNet}}) {
    const auto error = acc::detail::find_disagreement(by_rank);
    REQUIRE(error.has_value());
    CHECK(error->problems().front().where == "parameter 'fc.bias'");
    CHECK(error->problems().front().what.find("none") != std::string::npos);
  }
}

}  // namespace parameter_agreement_test
