// SPDX-License-Identifier: Apache-2.0
#include "acc/runtime/comm/cpu/join_machine.hpp"

#include <vector>

#include "support/catch.hpp"

namespace join_machine_test {

using acc::detail::ranks_of_machines;
using Machines = std::vector<std::vector<int>>;

TEST_CASE("join_machine: ranks with one number are on one machine, wherever they stand", "[runtime]") {
  CHECK(ranks_of_machines({7, 7, 7}) == Machines{{0, 1, 2}});
  CHECK(ranks_of_machines({7, 9, 7, 9, 8}) == Machines{{0, 2}, {1, 3}, {4}});
  CHECK(ranks_of_machines({9, 7}) == Machines{{0}, {1}});
}

}  // namespace join_machine_test
