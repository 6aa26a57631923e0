// SPDX-License-Identifier: Apache-2.0
#include "acc/runtime/recomputation/forward_state.hpp"

#include <ATen/autocast_mode.h>
#include <ATen/ops/rand.h>

#include "acc/runtime/tensors/random.hpp"
#include "support/catch.hpp"

namespace forward_state_test {

TEST_CASE("forward_state: random numbers come again, and those that follow are as without", "[runtime]") {
  acc::set_seed(1);
  const acc::detail::ForwardState state = acc::detail::forward_state({});
  const at::Tensor first = at::rand({4});
  const at::Tensor second = at::rand({4});
  acc::set_seed(1);
  at::rand({4});
  {
    const acc::detail::RestoredForwardState restored(state);
    CHECK(at::rand({4}).equal(first));
  }
  CHECK(at::rand({4}).equal(second));
}

TEST_CASE("forward_state: autocast is that of the forward, and afterwards that of the thread", "[runtime]") {
  const auto half_in_forward = [] {
    const acc::Autocast half(acc::MixedPrecision::fp16, at::kCPU, {.cache_enabled = false});
    return acc::detail::forward_state({});
  };
  const acc::detail::ForwardState state = half_in_forward();
  const acc::Autocast brain(acc::MixedPrecision::bf16);
  {
    const acc::detail::RestoredForwardState restored(state);
    CHECK(at::autocast::is_autocast_enabled(at::kCPU));
    CHECK(at::autocast::get_autocast_dtype(at::kCPU) == at::kHalf);
    CHECK_FALSE(at::autocast::is_autocast_cache_enabled());
    CHECK_FALSE(at::autocast::is_autocast_enabled(at::kCUDA));
  }
  CHECK(at::autocast::get_autocast_dtype(at::kCPU) == at::kBFloat16);
  CHECK(at::autocast::is_autocast_cache_enabled());
}

TEST_CASE("forward_state: a forward without autocast has none in backward's", "[runtime]") {
  const acc::detail::ForwardState state = acc::detail::forward_state({});
  const acc::Autocast brain(acc::MixedPrecision::bf16);
  const acc::detail::RestoredForwardState restored(state);
  CHECK_FALSE(at::autocast::is_autocast_enabled(at::kCPU));
}

}  // namespace forward_state_test
