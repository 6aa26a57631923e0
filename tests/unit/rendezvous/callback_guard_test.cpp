// SPDX-License-Identifier: Apache-2.0
#include "acc/rendezvous/callback_guard.hpp"

#include <functional>
#include <optional>

#include "support/catch.hpp"

namespace callback_guard_test {

using acc::launcher::CallbackGuard;

TEST_CASE("callback_guard: a callback does nothing after its owner is destroyed, or after reset()",
          "[rendezvous]") {
  std::optional<CallbackGuard> guard(std::in_place);
  int calls = 0;
  const std::function<void(int)> first = (*guard)([&](int by) { calls += by; });
  first(1);
  CHECK(calls == 1);
  guard->reset();
  first(1);
  CHECK(calls == 1);
  const std::function<void(int)> second = (*guard)([&](int by) { calls += by; });
  second(10);
  CHECK(calls == 11);
  guard.reset();
  second(10);
  CHECK(calls == 11);
}

}  // namespace callback_guard_test
