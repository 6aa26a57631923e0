// SPDX-License-Identifier: Apache-2.0
// Transfers between processes are tested by runtime/sharded_training_test.
#include "acc/runtime/comm/flat_transfer.hpp"

#include "support/catch.hpp"
#include "support/lone_group.hpp"
#include "support/torch_tensor.hpp"

namespace flat_transfer_test {

using acc::test::numbers;

TEST_CASE("flat_transfer: a process alone has all parts", "[runtime]") {
  const auto group = acc::test::lone_group();
  const at::Tensor flat = numbers({1, 2, 3}, {3}, at::kFloat);
  acc::detail::FlatTransfer transfer = acc::detail::start_all_gather(*group, flat, flat, 1);
  CHECK(static_cast<bool>(transfer));
  transfer.wait_received();
  transfer.wait_sent();
  CHECK(flat.equal(numbers({1, 2, 3}, {3}, at::kFloat)));
}

TEST_CASE("flat_transfer: the mean of bf16 is a float32 tensor, and can be had once", "[runtime]") {
  const auto group = acc::test::lone_group();
  acc::detail::FlatReduction reduction =
      acc::detail::start_reduce_scatter(*group, numbers({1, 2, 4}, {3}, at::kBFloat16), 1);
  CHECK(static_cast<bool>(reduction));
  CHECK(reduction.finish().equal(numbers({1, 2, 4}, {3}, at::kFloat)));
  CHECK_FALSE(static_cast<bool>(reduction));
}

}  // namespace flat_transfer_test
