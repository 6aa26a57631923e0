// SPDX-License-Identifier: Apache-2.0
#include "acc/runtime/cuda/device_choice.hpp"

#include "acc/base/error.hpp"
#include "support/catch.hpp"

TEST_CASE("device_choice: each process of a machine has the device of its local rank", "[runtime]") {
  const acc::WorkerEnv worker{.rank = 5, .local_rank = 1, .world_size = 8, .local_world_size = 4};
  CHECK(acc::choose_device(worker, 4) == c10::Device(c10::kCUDA, 1));
  CHECK(acc::choose_device({}, 1) == c10::Device(c10::kCUDA, 0));
}

TEST_CASE("device_choice: without devices it is the CPU", "[runtime]") {
  CHECK(acc::choose_device({.rank = 3, .local_rank = 3, .world_size = 4}, 0) == c10::Device(c10::kCPU));
}

TEST_CASE("device_choice: a process without a device of its own is refused", "[runtime]") {
  try {
    acc::choose_device({.rank = 6, .local_rank = 2, .world_size = 8}, 2);
    FAIL("no error");
  } catch (const acc::Error& error) {
    CHECK(error.problems().front().what == "no GPU is left for local rank 2: this process sees 2");
    CHECK(error.problems().front().where == "rank 6");
  }
}

TEST_CASE("device_choice: processes that may share devices take them in turn", "[runtime]") {
  const acc::WorkerEnv third{.rank = 6, .local_rank = 2, .world_size = 8};
  CHECK(acc::choose_device(third, 2, /*may_share=*/true) == c10::Device(c10::kCUDA, 0));
  CHECK(acc::choose_device(third, 0, /*may_share=*/true) == c10::Device(c10::kCPU));
}

TEST_CASE("device_choice: the CPU is asked for by the program or by the launcher", "[runtime]") {
  CHECK(acc::cpu_is_asked_for(true, {}));
  CHECK(acc::cpu_is_asked_for(false, {{"ACCELERATE_USE_CPU", "True"}}));
  CHECK_FALSE(acc::cpu_is_asked_for(false, {{"ACCELERATE_USE_CPU", "False"}}));
  CHECK_FALSE(acc::cpu_is_asked_for(false, {}));
}
