// SPDX-License-Identifier: Apache-2.0
#include "acc/plan/fp8.hpp"

#include "support/catch.hpp"
#include "support/errors.hpp"
#include "support/inputs.hpp"

TEST_CASE("fp8: the library reads its back end in upper case, however it was typed", "[plan]") {
  const acc::launcher::LaunchInputs given = acc::test::inputs(
      {"--fp8_backend", "te", "--fp8_override_linear_precision", "true,false,true", "train.py"});
  const acc::Environment environment = acc::launcher::fp8_environment(acc::launcher::Settings(given));
  CHECK(environment.get("ACCELERATE_FP8_BACKEND") == "TE");
  CHECK(environment.get("ACCELERATE_FP8_OVERRIDE_FPROP") == "1");
  CHECK(environment.get("ACCELERATE_FP8_OVERRIDE_DGRAD") == "0");
  CHECK(environment.get("ACCELERATE_FP8_OVERRIDE_WGRAD") == "1");
  CHECK(environment.get("ACCELERATE_FP8_PAD_INNER_DIM") == "1");
  CHECK_FALSE(environment.contains("ACCELERATE_FP8_USE_MXFP8_BLOCK_SCALING"));
}

TEST_CASE("fp8: truth values of a file are shown as Python shows them", "[plan]") {
  acc::launcher::LaunchInputs given = acc::test::inputs({"train.py"});
  given.file = acc::test::file({{"fp8_pad_inner_dim", false}, {"fp8_use_mxfp8_block_scaling", true}});
  const acc::Environment environment = acc::launcher::fp8_environment(acc::launcher::Settings(given));
  CHECK(environment.get("ACCELERATE_FP8_PAD_INNER_DIM") == "False");
  CHECK(environment.get("ACCELERATE_FP8_USE_MXFP8_BLOCK_SCALING") == "True");
  CHECK(environment.get("ACCELERATE_FP8_OVERRIDE_FPROP") == "False");
}
