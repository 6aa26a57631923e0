// SPDX-License-Identifier: Apache-2.0
#include "acc/config/schema.hpp"
#include "support/catch.hpp"
#include "support/config_section.hpp"
#include "support/errors.hpp"

namespace schema_performance_test {

using acc::launcher::Value;
using acc::test::error_of;
using acc::test::read_section;

TEST_CASE("schema_dynamo: back ends are taken in any case, and an unquoted no is one", "[config]") {
  CHECK(read_section("dynamo_config", "  backend: no\n") == Value{{"dynamo_backend", "NO"}});
  CHECK(read_section("dynamo_config", "  dynamo_backend: inductor\n") ==
        Value{{"dynamo_backend", "INDUCTOR"}});
}

TEST_CASE("schema_fp8: the names under which accelerate's questionnaire writes mean what was asked",
          "[config]") {
  CHECK(
      read_section("fp8_config",
                   "  backend: te\n  amax_history_length: 512\n  amax_compute_algorithm: max\n"
                   "  optimization_level: O1\n") ==
      Value{{"backend", "TE"}, {"amax_history_len", 512}, {"amax_compute_algo", "max"}, {"opt_level", "O1"}});
}

TEST_CASE("schema_fp8: precisions are three truth values, a tuple as text included", "[config]") {
  const Value expected = {{"override_linear_precision", {false, false, true}}};
  CHECK(read_section("fp8_config", "  override_linear_precision: [false, no, true]\n") == expected);
  CHECK(read_section("fp8_config", "  override_linear_precision: (false, false, true)\n") == expected);
  CHECK(error_of([] { read_section("fp8_config", "  override_linear_precision: [true]\n"); }) ==
        "c.yaml:3:30: override_linear_precision must be a list of 3 truth values, not a list");
}

}  // namespace schema_performance_test
