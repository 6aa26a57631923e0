// SPDX-License-Identifier: Apache-2.0
// Processes that differ are tested by runtime/sharded_training_test.
#include "acc/runtime/sharded/call_order.hpp"

#include <string>
#include <vector>

#include "support/catch.hpp"
#include "support/lone_group.hpp"

namespace call_order_test {

TEST_CASE("call_order: calls are numbered from 1, and a process alone takes part in what it announced",
          "[runtime]") {
  acc::detail::CallOrder order(
      acc::test::lone_group(), 1, [](std::int64_t) { return std::string("gathers layer1"); }, 70);
  std::vector<bool> parts(70, false);
  parts[1] = parts[63] = parts[64] = true;
  CHECK(order.announce(4) == 1);
  CHECK(order.announce(2, parts) == 2);
  order.require_same(1);
  CHECK(order.parts_of_all(2) == parts);
}

}  // namespace call_order_test
