// SPDX-License-Identifier: Apache-2.0
#include "acc/runtime/precision/autocast.hpp"

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
