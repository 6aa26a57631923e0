// SPDX-License-Identifier: Apache-2.0
#include "acc/runtime/parallel/unused_parameters.hpp"

#include "support/catch.hpp"

TEST_CASE("unused_parameters: they are named by their place among those that are trained", "[runtime]") {
  const std::vector<std::string> trained = {"0.bias", "1.weight", "1.bias", "2.weight", "2.bias"};
  const auto error = acc::explain_unused_parameters(
      "Expected to have finished reduction in the prior iteration before starting a new one. ...\n"
      "Parameter indices which did not receive grad for rank 1: 0 3\n In addition, 1 2 3",
      trained, "rank 1, Net");
  REQUIRE(error.has_value());
  CHECK(
      std::string(error->what()) ==
      "rank 1, Net: took no part in the last loss, so the processes cannot average their gradients: "
      "0.bias, 2.weight (set DdpOptions::find_unused_parameters, or use every parameter in each forward, or "
      "freeze it with requires_grad_(false) before the forward)");
}

TEST_CASE("unused_parameters: a text without a list is still told, and other texts are not", "[runtime]") {
  const std::vector<std::string> trained = {"weight"};
  const auto error =
      acc::explain_unused_parameters("Expected to have finished reduction in the prior", trained, "rank 0");
  REQUIRE(error.has_value());
  CHECK(error->problems().front().what.ends_with(": some parameters"));
  CHECK_FALSE(acc::explain_unused_parameters("Connection closed by peer", trained, "rank 0").has_value());
}
