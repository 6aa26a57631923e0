// SPDX-License-Identifier: Apache-2.0
#include "acc/plan/section_variables.hpp"

#include "support/catch.hpp"
#include "support/errors.hpp"
#include "support/inputs.hpp"

using acc::Environment;
using acc::launcher::TruthStyle;

TEST_CASE("section_variables: what has a value is under its variable", "[plan]") {
  acc::launcher::LaunchInputs given =
      acc::test::inputs({"--zero_stage", "2", "--zero3_init_flag", "yes", "train.py"});
  given.file = acc::test::file({{"gradient_clipping", 1}});
  const acc::launcher::Settings settings(given);
  CHECK(section_variables(settings, "deepspeed_config", TruthStyle::python) ==
        Environment{{"ACCELERATE_DEEPSPEED_ZERO_STAGE", "2"},
                    {"ACCELERATE_DEEPSPEED_ZERO3_INIT", "True"},
                    {"ACCELERATE_GRADIENT_CLIPPING", "1"}});
  CHECK(section_variables(settings, "deepspeed_config", TruthStyle::lower)
            .get("ACCELERATE_DEEPSPEED_ZERO3_INIT") == "true");
}
