// SPDX-License-Identifier: Apache-2.0
#include "acc/runtime/recomputation/checkpoint_switch.hpp"

#include <ATen/core/grad_mode.h>

#include <thread>

#include "support/catch.hpp"
#include "support/errors.hpp"

namespace checkpoint_switch_test {

using acc::detail::CheckpointSwitch;
using acc::detail::computes_again;

TEST_CASE("checkpoint_switch: it is on where nobody says, and in other threads", "[runtime]") {
  CHECK(computes_again());
  const CheckpointSwitch off(false);
  CHECK_FALSE(computes_again());
  bool elsewhere = false;
  std::thread([&] { elsewhere = computes_again(); }).join();
  CHECK(elsewhere);
}

TEST_CASE("checkpoint_switch: the last one that says something counts, while it exists", "[runtime]") {
  {
    const CheckpointSwitch off(false);
    const CheckpointSwitch nothing(std::nullopt);
    CHECK_FALSE(computes_again());
    {
      const CheckpointSwitch on(true);
      CHECK(computes_again());
    }
    CHECK_FALSE(computes_again());
  }
  CHECK(computes_again());
}

TEST_CASE("checkpoint_switch: without gradients nothing is computed again", "[runtime]") {
  const CheckpointSwitch on(true);
  const at::NoGradGuard no_grad;
  CHECK_FALSE(computes_again());
}

TEST_CASE("checkpoint_switch: that nothing was called is an error that says what to write", "[runtime]") {
  computes_again();
  const CheckpointSwitch on(true);
  CHECK(
      acc::test::error_of([&] { on.require_calls("Net"); }) ==
      "Net: activation checkpointing is on, but nothing in forward calls acc::checkpoint (call the blocks of "
      "the model by it: x = acc::checkpoint(block, x))");
  computes_again();
  on.require_calls("Net");
}

}  // namespace checkpoint_switch_test
