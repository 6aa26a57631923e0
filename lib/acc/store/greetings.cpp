// SPDX-License-Identifier: Apache-2.0
#include "acc/store/greetings.hpp"

#include <algorithm>
#include <utility>
#include <vector>

namespace acc::launcher {

Greetings::Greetings(boost::asio::io_context& loop, const Limits& limits) : timer_(loop), limits_(limits) {}

void Greetings::expect(const std::shared_ptr<Guest>& guest) {
  if (!guest->is_awaited()) return;
  expected_.push_back({.deadline = Clock::now() + limits_.timeout, .guest = guest});
  make_room();
  wait();
}

void Greetings::close() {
  expected_.clear();
  timer_.cancel();
}

// What a guest has sent and nobody has read yet may be its greeting: that is known before the next turn.
void Greetings::make_room() {
  if (expected_.size() <= limits_.max_guests) return;
  std::erase_if(expected_, [](const Expected& one) {
    const auto guest = one.guest.lock();
    return !guest || !guest->is_awaited();
  });
  std::size_t surplus = expected_.size() - std::min(expected_.size(), limits_.max_guests);
  std::vector<std::shared_ptr<Guest>> ended;
  std::erase_if(expected_, [&](const Expected& one) {
    if (surplus == 0) return false;
    auto guest = one.guest.lock();
    if (guest->has_unread()) return false;
    --surplus;
    ended.push_back(std::move(guest));
    return true;
  });
  for (const auto& guest : ended) guest->end();
}

// The first deadline is the earliest, since all have the same timeout.
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
    const auto guest = expected_.front().guest.lock();
    expected_.pop_front();
    if (!guest || !guest->is_awaited()) continue;
    if (guest->has_unread()) {
      expected_.push_back({.deadline = now + limits_.timeout, .guest = guest});
    } else {
      guest->end();
    }
  }
}

}  // namespace acc::launcher
