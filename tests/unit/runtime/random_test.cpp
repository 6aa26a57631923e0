// SPDX-License-Identifier: Apache-2.0
#include "acc/runtime/random.hpp"

#include <ATen/ops/rand.h>

#include "support/catch.hpp"

TEST_CASE("random: a generator takes the state that rank 0 sends", "[runtime]") {
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
