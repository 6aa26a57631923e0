// SPDX-License-Identifier: Apache-2.0
#include "acc/runtime/checkpoint/pt_value.hpp"

#include "support/catch.hpp"
#include "support/torch_tensor.hpp"

using acc::PtDict;
using acc::PtValue;

TEST_CASE("pt value: a dict is searched by text and by number", "[runtime]") {
  const PtValue dict = PtDict{{"a", 1}, {0, 2}};
  CHECK(dict.find("a")->number() == 1);
  CHECK(dict.find(0)->number() == 2);
  CHECK(dict.find("0") == nullptr);
  CHECK(PtValue("a").find("a") == nullptr);
}

TEST_CASE("pt value: numbers of every kind", "[runtime]") {
  CHECK(PtValue(true).number() == 1);
  CHECK(PtValue(std::int64_t{-3}).number() == -3);
  CHECK(PtValue(0.5).number() == 0.5);
  CHECK(PtValue(acc::test::numbers({7}, {1}, at::kFloat)).number() == 7);
  CHECK_FALSE(PtValue(acc::test::numbers({7, 8}, {2}, at::kFloat)).number());
  CHECK_FALSE(PtValue("7").number());
  CHECK_FALSE(PtValue().number());
}
