// SPDX-License-Identifier: Apache-2.0
#include "acc/runtime/checkpoint/two_threads.hpp"

#include <atomic>
#include <latch>
#include <stdexcept>
#include <string>
#include <vector>

#include "support/catch.hpp"

namespace two_threads_test {

using acc::detail::on_two_threads;

TEST_CASE("two threads: each number is called once, two at a time", "[runtime]") {
  std::vector<int> calls(100);
  std::latch both(2);
  on_two_threads(calls.size(), [&](std::size_t i) {
    if (i < 2) both.arrive_and_wait();
    ++calls[i];
  });
  CHECK(calls == std::vector<int>(100, 1));
  on_two_threads(0, [](std::size_t) { throw std::logic_error("called"); });
}

TEST_CASE("two threads: the error of the lowest number is thrown, and no call begins after it", "[runtime]") {
  std::latch both(2);
  std::atomic<int> later = 0;
  CHECK_THROWS_WITH(on_two_threads(1000,
                                   [&](std::size_t i) {
                                     if (i > 1) ++later;
                                     both.arrive_and_wait();
                                     throw std::runtime_error(std::to_string(i));
                                   }),
                    "0");
  CHECK(later == 0);
}

}  // namespace two_threads_test
