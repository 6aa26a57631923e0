// SPDX-License-Identifier: Apache-2.0
#include "acc/plan/other_launcher.hpp"

#include "support/catch.hpp"
#include "support/errors.hpp"
#include "support/inputs.hpp"

TEST_CASE("other_launcher: the first name that is on PATH is taken", "[plan]") {
  const acc::launcher::OtherLauncher found =
      acc::launcher::find_launcher({"srun", "mpirun"}, acc::test::inputs({"train.py"}));
  CHECK(found.command == std::vector<std::string>{"mpirun"});
  CHECK(found.file == "/usr/bin/mpirun");
  CHECK_FALSE(found.problem);
}

TEST_CASE("other_launcher: one that is missing is a problem of the plan", "[plan]") {
  const acc::launcher::OtherLauncher found =
      acc::launcher::find_launcher({"aprun", "jsrun"}, acc::test::inputs({"train.py"}));
  CHECK(found.command == std::vector<std::string>{"aprun"});
  REQUIRE(found.problem);
  CHECK(to_string(*found.problem) ==
        "this job needs aprun or jsrun, which is not on PATH (install it on this machine)");
}
