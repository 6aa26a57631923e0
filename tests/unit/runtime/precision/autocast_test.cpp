// SPDX-License-Identifier: Apache-2.0
#include "acc/runtime/precision/autocast.hpp"

#include <ATen/autocast_mode.h>
#include <ATen/core/Tensor.h>

#include "support/catch.hpp"
#include "support/torch_tensor.hpp"

TEST_CASE("autocast: the precision holds inside of the guard alone, also nested", "[runtime]") {
  const at::Tensor x = acc::test::numbers({1, 2, 3, 4}, {2, 2}, at::kFloat);
  const auto type = [&] { return x.mm(x).scalar_type(); };
  {
    const acc::Autocast outer(acc::MixedPrecision::bf16);
    CHECK(type() == at::kBFloat16);
    {
      const acc::Autocast inner(acc::MixedPrecision::bf16);
      CHECK(type() == at::kBFloat16);
    }
    CHECK(type() == at::kBFloat16);
  }
  CHECK(type() == at::kFloat);
  const acc::Autocast none(acc::MixedPrecision::no);
  CHECK(type() == at::kFloat);
}

TEST_CASE("autocast: fp16 computes in half, and a part can be taken back to float32", "[runtime]") {
  const at::Tensor x = acc::test::numbers({1, 2, 3, 4}, {2, 2}, at::kFloat);
  const auto type = [&] { return x.mm(x).scalar_type(); };
  const acc::Autocast half(acc::MixedPrecision::fp16);
  CHECK(type() == at::kHalf);
  {
    const acc::Autocast off(acc::MixedPrecision::fp16, c10::DeviceType::CPU, {.enabled = false});
    CHECK(type() == at::kFloat);
  }
  CHECK(type() == at::kHalf);
}

TEST_CASE("autocast: CUDA's is switched apart from the CPU's", "[runtime]") {
  const acc::Autocast cuda(acc::MixedPrecision::fp16, c10::DeviceType::CUDA, {.cache_enabled = false});
  CHECK(at::autocast::is_autocast_enabled(at::kCUDA));
  CHECK(at::autocast::get_autocast_dtype(at::kCUDA) == at::kHalf);
  CHECK_FALSE(at::autocast::is_autocast_cache_enabled());
  CHECK_FALSE(at::autocast::is_autocast_enabled(at::kCPU));
}
