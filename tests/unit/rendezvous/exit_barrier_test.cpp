// SPDX-License-Identifier: Apache-2.0
#include "acc/rendezvous/exit_barrier.hpp"

#include <optional>

#include "support/board_store.hpp"
#include "support/catch.hpp"

namespace {

using acc::launcher::ExitBarrier;
using acc::test::BoardStore;

constexpr const char* kMembers = "/p/torchelastic/agent/terminal_state/num_members";
constexpr const char* kLast = "/p/torchelastic/agent/terminal_state/last_member";

ExitBarrier::Options options(int own) {
  return {.prefix = "/p/", .group_size = 4, .own = own};
}

}  // namespace

TEST_CASE("exit barrier: whoever comes last lets all go", "[rendezvous]") {
  BoardStore store;
  std::optional<bool> one;
  std::optional<bool> two;
  ExitBarrier first(store.hand, options(3), [&](bool all) { one = all; });
  store.await(kMembers);
  CHECK(store.get(kMembers) == "3");
  CHECK(store.get(kLast) == "(none)");
  CHECK_FALSE(one.has_value());
  ExitBarrier last(store.hand, options(1), [&](bool all) { two = all; });
  store.until([&] { return one && two; });
  CHECK(*one);
  CHECK(*two);
  CHECK(store.get(kLast) == "<val_ignored>");
}

TEST_CASE("exit barrier: who does not come in time is not waited for", "[rendezvous]") {
  BoardStore store;
  std::optional<bool> result;
  ExitBarrier::Options soon = options(3);
  soon.timeout = std::chrono::milliseconds(20);
  ExitBarrier barrier(store.hand, soon, [&](bool all) { result = all; });
  store.until([&] { return result.has_value(); });
  CHECK_FALSE(*result);
}

TEST_CASE("exit barrier: a lost store ends it", "[rendezvous]") {
  BoardStore store;
  std::optional<bool> result;
  ExitBarrier barrier(store.hand, options(3), [&](bool all) { result = all; });
  store.await(kMembers);
  store.server->reset();
  store.until([&] { return result.has_value(); });
  CHECK_FALSE(*result);
}
