// SPDX-License-Identifier: Apache-2.0
// What is saved and loaded is tested by runtime/checkpoints_test.
#include "acc/runtime/accelerator/checkpointing.hpp"

#include <vector>

#include "support/catch.hpp"

namespace checkpointing_test {

TEST_CASE("checkpointing: hooks are called in order, and can be removed", "[runtime]") {
  acc::detail::Hooks<int> hooks;
  hooks.add(1);
  acc::HookHandle second = hooks.add(2);
  hooks.add(3);
  CHECK(hooks.all() == std::vector<int>{1, 2, 3});
  second.remove();
  second.remove();
  CHECK(hooks.all() == std::vector<int>{1, 3});
}

}  // namespace checkpointing_test
