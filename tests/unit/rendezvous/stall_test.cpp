// SPDX-License-Identifier: Apache-2.0
#include "acc/rendezvous/stall.hpp"

#include <vector>

#include "support/catch.hpp"

namespace stall_test {

using namespace acc;
using namespace acc::launcher;

namespace {

StepsReached step(std::int64_t steps) {
  return {.is_known = true, .steps = steps};
}

StepsReached step_of_process(std::int64_t steps) {
  return {.is_known = true, .steps = steps, .counts_over_restarts = false};
}

// Which of these failures, one after the other, is the first that ends the job, from 0; -1: none.
int end_of(int max, const std::vector<StepsReached>& failures) {
  StallCount count(max);
  for (std::size_t i = 0; i < failures.size(); ++i) {
    if (!count.on_failure(failures[i]).empty()) return static_cast<int>(i);
  }
  return -1;
}

}  // namespace

TEST_CASE("stall: so many restarts in a row without a new step end the job", "[rendezvous]") {
  CHECK(end_of(1, {step(7), step(7)}) == 1);
  CHECK(end_of(2, {step(7), step(5), step(7)}) == 2);
  CHECK(end_of(3, {step(7), step(7), step(7)}) == -1);
  CHECK(end_of(0, {step(7), step(7), step(7)}) == -1);
}

TEST_CASE("stall: a step beyond the first of the failures begins a new count", "[rendezvous]") {
  CHECK(end_of(2, {step(7), step(7), step(8), step(8), step(8)}) == 4);
  CHECK(end_of(1, {step(1), step(2), step(3), step(4)}) == -1);
  // Not those of the failures between.
  CHECK(end_of(3, {step(7), step(3), step(4), step(5)}) == 3);
}

TEST_CASE("stall: steps that are not those of the whole training are progress, whatever their number",
          "[rendezvous]") {
  CHECK(end_of(1, {step_of_process(100), step_of_process(1), step_of_process(1)}) == -1);
  CHECK(end_of(1, {step(100), step_of_process(1)}) == -1);
  CHECK(end_of(1, {step_of_process(100), step(1)}) == -1);
  CHECK(end_of(1, {step_of_process(100), step_of_process(0)}) == 1);
}

TEST_CASE("stall: a failure before which nobody said how far it is does not count", "[rendezvous]") {
  CHECK(end_of(1, {{}, {}, {}}) == -1);
  CHECK(end_of(2, {step(7), {}, step(7), {}, step(7)}) == 4);
}

TEST_CASE("stall: the reason says how far they got", "[rendezvous]") {
  const auto reason = [](const StepsReached& first, int max) {
    StallCount count(max);
    std::string last;
    for (int i = 0; i <= max; ++i) last = count.on_failure(i == 0 ? first : step(0));
    return last;
  };
  CHECK(reason(step(12), 2) ==
        "not restarted: no rank got beyond step 12 in 2 restarts (--restarts-without-progress)");
  CHECK(reason(step(0), 1) ==
        "not restarted: no rank has ended a step in 1 restart (--restarts-without-progress)");
  CHECK(reason(step_of_process(12), 1) ==
        "not restarted: no rank has ended a step in 1 restart (--restarts-without-progress)");
}

TEST_CASE("stall: the rank that got furthest counts", "[rendezvous]") {
  CHECK(steps_reached({}) == StepsReached{});
  const Progress none = {};
  const Progress third = {.steps = 3, .step_scope = StepScope::training};
  const Progress fifth = {.steps = 5, .step_scope = StepScope::training};
  const Progress counted = {.steps = 2};
  const Progress another = {.step_scope = StepScope::another_training};
  CHECK(steps_reached(std::vector{none}) == step(0));
  CHECK(steps_reached(std::vector{third, fifth, none}) == step(5));
  CHECK(steps_reached(std::vector{counted, none}) == step_of_process(2));
  // Rank 0 alone says the steps of the training, and the others are followed.
  CHECK(steps_reached(std::vector{third, counted}) == step(3));
  CHECK(steps_reached(std::vector{third, another}) == step_of_process(3));
  // A step that is taken by hand, and a backward that runs out of memory in each attempt.
  CHECK(steps_reached(std::vector{Progress{.backwards = 2}}) == step_of_process(1));
  CHECK(steps_reached(std::vector{Progress{.backwards = 1}}) == step(0));
  CHECK(steps_reached(std::vector{another}) == step_of_process(1));
  CHECK(furthest(step(3), {}) == step(3));
  CHECK(furthest({}, step_of_process(3)) == step_of_process(3));
}

}  // namespace stall_test
