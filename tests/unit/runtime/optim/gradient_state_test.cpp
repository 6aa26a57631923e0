// SPDX-License-Identifier: Apache-2.0
#include "acc/runtime/optim/gradient_state.hpp"

#include <string>

#include "acc/base/error.hpp"
#include "support/catch.hpp"

namespace {

// One letter a batch over `passes` of `batches` each: S where the optimizer steps.
std::string trace(acc::GradientState gradients, int batches, int passes) {
  std::string steps;
  for (int pass = 0; pass < passes; ++pass) {
    for (int batch = 0; batch < batches; ++batch) {
      gradients.next_batch(batch + 1 == batches);
      steps += gradients.sync_gradients() ? 'S' : '.';
    }
    steps += ' ';
  }
  return steps;
}

}  // namespace

TEST_CASE("gradient_state: before the first batch gradients are complete", "[runtime]") {
  CHECK(acc::GradientState(4).sync_gradients());
}

TEST_CASE(
    "gradient_state: a step each num_steps batches and at the loader's end, where the count begins anew",
    "[runtime]") {
  CHECK(trace(acc::GradientState(3), 5, 2) == "..S.S ..S.S ");
  CHECK(trace(acc::GradientState(1), 3, 1) == "SSS ");
  CHECK(trace(acc::GradientState(9), 3, 2) == "..S ..S ");
}

TEST_CASE("gradient_state: without sync_with_dataloader the count goes on over the loader's end",
          "[runtime]") {
  CHECK(trace(acc::GradientState(3, {.sync_with_dataloader = false}), 5, 3) == "..S.. S..S. .S..S ");
}

TEST_CASE("gradient_state: a number of steps below 1 is refused", "[runtime]") {
  CHECK_THROWS_AS(acc::GradientState(0), acc::Error);
  acc::GradientState gradients;
  CHECK_THROWS_WITH(gradients.set_num_steps(-2), "gradient_accumulation_steps: must be at least 1, not -2");
}
