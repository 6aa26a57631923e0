// SPDX-License-Identifier: Apache-2.0
#include "acc/runtime/tensors/random.hpp"

#include <ATen/Context.h>
#include <ATen/ops/rand.h>

#include <cstdlib>

#include "support/catch.hpp"

namespace random_test {

TEST_CASE("random: the seed determines the numbers and can be read", "[runtime]") {
  acc::set_seed(7);
  CHECK(acc::default_seed() == 7);
  const at::Tensor state = acc::random_state();
  const at::Tensor first = at::rand({3});
  acc::set_seed(7);
  CHECK(acc::random_state().equal(state));
  CHECK(at::rand({3}).equal(first));
  acc::set_seed(8);
  CHECK_FALSE(at::rand({3}).equal(first));
}

TEST_CASE("random: device_specific adds the rank", "[runtime]") {
  ::setenv("RANK", "3", 1);
  ::setenv("WORLD_SIZE", "4", 1);
  acc::set_seed(7, {.device_specific = true});
  ::unsetenv("RANK");
  ::unsetenv("WORLD_SIZE");
  CHECK(acc::default_seed() == 10);
}

TEST_CASE("random: deterministic forbids other algorithms", "[runtime]") {
  acc::set_seed(7);
  CHECK_FALSE(at::globalContext().deterministicAlgorithms());
  acc::set_seed(7, {.deterministic = true});
  CHECK(at::globalContext().deterministicAlgorithms());
  at::globalContext().setDeterministicAlgorithms(false, false);
}

TEST_CASE("random: a generator is set to the state of rank 0", "[runtime]") {
  acc::set_seed(3);
  const at::Tensor state = acc::random_state();
  const at::Tensor expected = at::rand({4});
  acc::set_seed(99);
  const auto send = [&](at::Tensor& tensor) { tensor.copy_(state); };
  acc::synchronize_rng_states({acc::RngType::generator}, send);
  CHECK(acc::default_seed() == 99);
  acc::synchronize_rng_states({acc::RngType::torch}, send);
  CHECK(at::rand({4}).equal(expected));
}

}  // namespace random_test
