// SPDX-License-Identifier: Apache-2.0
#include "acc/notebook/fork_rule.hpp"

#include <dlfcn.h>
#include <stdlib.h>

#include <optional>

#include "acc/runtime/process/partial_state.hpp"
#include "support/catch.hpp"
#include "support/errors.hpp"
#include "support/in_child.hpp"

namespace fork_rule_test {

using namespace acc;
using namespace acc::detail;
using namespace acc::test;

namespace {

// Where the driver's cuDeviceGetCount() answers so.
bool has_used_cuda_when(const char* answer) {
  return in_child([&] {
           ::setenv("ACC_FAKE_CUDA_ANSWER", answer, 1);
           if (::dlopen(ACC_FAKE_CUDA "/libcuda.so.1", RTLD_NOW) == nullptr) return 10;
           return has_used_cuda() ? 1 : 0;
         }) == 1;
}

}  // namespace

TEST_CASE("fork_rule: CUDA counts as used when its driver is initialized", "[notebook]") {
  constexpr const char* kNotInitialized = "3";
  CHECK(has_used_cuda_when("0"));
  CHECK_FALSE(has_used_cuda_when(kNotInitialized));
}

TEST_CASE("fork_rule: a worker launches no others", "[notebook]") {
  CHECK(error_of([] { require_fork_can_train({{"RANK", "0"}}); }) ==
        "notebook_launcher: this process is a worker of a job already: RANK is set (call it in the program "
        "that "
        "starts the job)");
}

TEST_CASE("fork_rule: a process with a PartialState is refused until it is gone", "[notebook]") {
  std::optional<PartialState> state;
  state.emplace();
  CHECK(error_of([] { require_fork_can_train({}); }) ==
        "notebook_launcher: this process has an Accelerator, or is in a process group (make them in the "
        "function "
        "that is launched; in a notebook, restart the kernel)");
  const PartialState copy = *state;
  state.reset();
  CHECK(has_joined_job());
  CHECK(error_of([] { require_fork_can_train({}); }) != "no error");
}

TEST_CASE("fork_rule: any other process may fork", "[notebook]") {
  CHECK_FALSE(has_joined_job());
  CHECK(error_of([] { require_fork_can_train({}); }) == "no error");
}

}  // namespace fork_rule_test
