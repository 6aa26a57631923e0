// SPDX-License-Identifier: Apache-2.0
#include "acc/store/greetings.hpp"

#include <utility>

namespace acc {

Greetings::Greetings(boost::asio::io_context& loop, std::chrono::milliseconds patience)
    : timer_(loop), patience_(patience) {}

void Greetings::expect(const std::shared_ptr<Connection>& connection) {
  expected_.push_back({.deadline = Clock::now() + patience_, .connection = connection});
  wait();
}

void Greetings::close() {
  expected_.clear();
  timer_.cancel();
}

// The first deadline is the earliest, since all have the same patience.
void Greetings::wait() {
  if (waiting_ || expected_.empty()) return;
  waiting_ = true;
  timer_.expires_at(expected_.front().deadline);
  timer_.async_wait([self = shared_from_this()](const boost::system::error_code&) {
    self->waiting_ = false;
    self->end_late();
    self->wait();
  });
}

void Greetings::end_late() {
  const Clock::time_point now = Clock::now();
  while (!expected_.empty() && expected_.front().deadline <= now) {
    const auto connection = expected_.front().connection.lock();
    expected_.pop_front();
    if (connection && connection->end_if_silent()) {
      expected_.push_back({.deadline = now + patience_, .connection = connection});
    }
  }
}

}  // namespace acc
