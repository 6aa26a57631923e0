// SPDX-License-Identifier: Apache-2.0
#include "acc/runtime/comm/device_choice.hpp"

#include "acc/base/error.hpp"
#include "support/catch.hpp"

namespace device_choice_test {

using acc::Environment;
using acc::detail::may_load_cuda;

TEST_CASE("load_rule: CUDA is loaded if there is either sign of a driver", "[runtime]") {
  CHECK(may_load_cuda({}, {.kernel_module = true}));
  CHECK(may_load_cuda({}, {.library = true}));
  CHECK_FALSE(may_load_cuda({}, {}));
}

TEST_CASE("load_rule: CUDA is not loaded if ACCELERATE_USE_CPU is true", "[runtime]") {
  for (const char* word : {"1", "true", "True", "yes", "on"})
    CHECK_FALSE(may_load_cuda({{"ACCELERATE_USE_CPU", word}}, {.kernel_module = true}));
  for (const char* word : {"0", "False", "no", ""})
    CHECK(may_load_cuda({{"ACCELERATE_USE_CPU", word}}, {.kernel_module = true}));
}

TEST_CASE("load_rule: CUDA is not loaded if ACC_LOAD_CUDA is false", "[runtime]") {
  for (const char* word : {"0", "false", "no"})
    CHECK_FALSE(may_load_cuda({{"ACC_LOAD_CUDA", word}}, {.kernel_module = true}));
  for (const char* word : {"1", "yes", ""})
    CHECK(may_load_cuda({{"ACC_LOAD_CUDA", word}}, {.kernel_module = true}));
  CHECK_FALSE(may_load_cuda({{"ACC_LOAD_CUDA", "1"}}, {}));
}

TEST_CASE("load_rule: CUDA is not loaded if no device is visible", "[runtime]") {
  for (const char* list : {"", " ", "-1", "-1,0"})
    CHECK_FALSE(may_load_cuda({{"CUDA_VISIBLE_DEVICES", list}}, {.library = true}));
  for (const char* list : {"0", "2,3", "GPU-1234"})
    CHECK(may_load_cuda({{"CUDA_VISIBLE_DEVICES", list}}, {.library = true}));
}

TEST_CASE("device_choice: each process of a machine uses the device of its local rank", "[runtime]") {
  const acc::WorkerEnv worker{.rank = 5, .local_rank = 1, .world_size = 8, .local_world_size = 4};
  CHECK(acc::detail::choose_device(worker, 4) == c10::Device(c10::kCUDA, 1));
  CHECK(acc::detail::choose_device({}, 1) == c10::Device(c10::kCUDA, 0));
}

TEST_CASE("device_choice: without devices it is the CPU", "[runtime]") {
  CHECK(acc::detail::choose_device({.rank = 3, .local_rank = 3, .world_size = 4}, 0) ==
        c10::Device(c10::kCPU));
}

TEST_CASE("device_choice: a process without a device of its own is refused", "[runtime]") {
  try {
    acc::detail::choose_device({.rank = 6, .local_rank = 2, .world_size = 8}, 2);
    FAIL("no error");
  } catch (const acc::Error& error) {
    CHECK(error.problems().front().what == "there is no GPU for local rank 2: this process sees 2");
    CHECK(error.problems().front().where == "rank 6");
  }
}

TEST_CASE("device_choice: processes that may share devices use them round-robin", "[runtime]") {
  const acc::WorkerEnv third{.rank = 6, .local_rank = 2, .world_size = 8};
  CHECK(acc::detail::choose_device(third, 2, /*may_share=*/true) == c10::Device(c10::kCUDA, 0));
  CHECK(acc::detail::choose_device(third, 0, /*may_share=*/true) == c10::Device(c10::kCPU));
}

TEST_CASE("device_choice: the program or the launcher can require the CPU", "[runtime]") {
  CHECK(acc::detail::must_use_cpu(true, {}));
  CHECK(acc::detail::must_use_cpu(false, {{"ACCELERATE_USE_CPU", "True"}}));
  CHECK_FALSE(acc::detail::must_use_cpu(false, {{"ACCELERATE_USE_CPU", "False"}}));
  CHECK_FALSE(acc::detail::must_use_cpu(false, {}));
}

}  // namespace device_choice_test
