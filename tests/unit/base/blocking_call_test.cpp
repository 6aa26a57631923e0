// SPDX-License-Identifier: Apache-2.0
#include "acc/base/blocking_call.hpp"

#include <stdexcept>

#include "support/catch.hpp"
#include "support/slow_end.hpp"

namespace blocking_call_test {

using acc::BlockingCall;
using namespace std::chrono_literals;
using Clock = std::chrono::steady_clock;

TEST_CASE("blocking_call: who has the result may fork, for the thread has ended", "[base]") {
  std::atomic<bool> ended = false;
  BlockingCall<int> call([&] {
    acc::test::end_slowly(ended);
    return 7;
  });
  CHECK(call.result(Clock::time_point::max()) == 7);
  CHECK(ended);
}

TEST_CASE("blocking_call: a call that does not return in time holds nobody up", "[base]") {
  std::promise<void> enough;
  const std::shared_future<void> enough_now = enough.get_future().share();
  BlockingCall<int> call([enough_now] {
    enough_now.wait();
    return 7;
  });
  CHECK_FALSE(call.result(Clock::now()));
  {
    const BlockingCall<int> left_behind([enough_now] { return enough_now.wait(), 7; });
  }
  enough.set_value();
  CHECK(call.result(Clock::time_point::max()) == 7);
}

TEST_CASE("blocking_call: the result throws what the call threw", "[base]") {
  BlockingCall<int> call([]() -> int { throw std::runtime_error("no"); });
  CHECK_THROWS_AS(call.result(Clock::time_point::max()), std::runtime_error);
}

}  // namespace blocking_call_test
