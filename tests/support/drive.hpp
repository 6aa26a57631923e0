// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <boost/asio/io_context.hpp>
#include <chrono>
#include <stdexcept>

namespace acc::test {

/// Runs the loop until `reached`, one handler at a time; throws after 60 s, so that a hang becomes a failed
/// test.
template <typename Condition>
void drive(boost::asio::io_context& loop, Condition reached) {
  const auto limit = std::chrono::steady_clock::now() + std::chrono::seconds(60);
  loop.restart();
  while (!reached()) {
    if (loop.run_one_until(limit) == 0) throw std::runtime_error("what was waited for did not come");
  }
}

}  // namespace acc::test
