// SPDX-License-Identifier: Apache-2.0
#include "acc/plan/memory_checkpoints.hpp"

#include "acc/plan/resolve.hpp"
#include "support/catch.hpp"
#include "support/errors.hpp"
#include "support/inputs.hpp"

namespace memory_checkpoints_test {

using namespace acc;
using namespace acc::launcher;
using namespace acc::test;

TEST_CASE("memory_checkpoints: a size by the flag, by a variable, and by the file; none by default",
          "[plan]") {
  CHECK(resolve(inputs({"train.py"})).memory_checkpoints == 0);
  CHECK(resolve(inputs({"--memory-checkpoints", "8GB", "train.py"})).memory_checkpoints == 8'000'000'000);
  LaunchInputs launch_inputs = inputs({"train.py"});
  launch_inputs.environment.set("ACC_MEMORY_CHECKPOINTS", "1GiB");
  CHECK(resolve(launch_inputs).memory_checkpoints == std::uint64_t{1} << 30U);
  LaunchInputs with_file = inputs({"train.py"});
  with_file.file[key::memory_checkpoints] = {"2MB", "job.yaml:3"};
  CHECK(resolve(with_file).memory_checkpoints == 2'000'000);
}

TEST_CASE("memory_checkpoints: what is not a size is an error", "[plan]") {
  CHECK(error_of([] { resolve(inputs({"--memory-checkpoints", "8", "train.py"})); }) ==
        "--memory-checkpoints: '8' is not a size (as in 5GB or 200MB)");
}

}  // namespace memory_checkpoints_test
