// SPDX-License-Identifier: Apache-2.0
#include "acc/store/handshakes.hpp"

#include <algorithm>
#include <utility>
#include <vector>

#include "acc/base/event_loop.hpp"

namespace acc::launcher {

Handshakes::Handshakes(net::io_context& loop, const Limits& limits) : timer_(loop), limits_(limits) {}

void Handshakes::expect(const std::shared_ptr<PendingConnection>& connection) {
  if (!connection->is_pending()) return;
  pending_.push_back({.deadline = Clock::now() + limits_.timeout, .connection = connection});
  make_room();
  wait();
}

void Handshakes::close() {
  pending_.clear();
  timer_.cancel();
}

// Spares connections with unread bytes, which may identify the client.
void Handshakes::make_room() {
  if (pending_.size() <= limits_.max_pending) return;
  std::erase_if(pending_, [](const Pending& one) {
    const auto connection = one.connection.lock();
    return !connection || !connection->is_pending();
  });
  std::size_t surplus = pending_.size() - std::min(pending_.size(), limits_.max_pending);
  std::vector<std::shared_ptr<PendingConnection>> evicted;
  std::erase_if(pending_, [&](const Pending& pending) {
    if (surplus == 0) return false;
    auto connection = pending.connection.lock();
    if (connection->has_unread()) return false;
    --surplus;
    evicted.push_back(std::move(connection));
    return true;
  });
  for (const auto& connection : evicted) connection->end();
}

// The first deadline is the earliest, since all have the same timeout.
void Handshakes::wait() {
  if (waiting_ || pending_.empty()) return;
  waiting_ = true;
  timer_.expires_at(pending_.front().deadline);
  timer_.async_wait([self = shared_from_this()](const boost::system::error_code&) {
    self->waiting_ = false;
    self->end_late();
    self->wait();
  });
}

void Handshakes::end_late() {
  const Clock::time_point now = Clock::now();
  while (!pending_.empty() && pending_.front().deadline <= now) {
    const auto connection = pending_.front().connection.lock();
    pending_.pop_front();
    if (!connection || !connection->is_pending()) continue;
    if (connection->has_unread()) {
      pending_.push_back({.deadline = now + limits_.timeout, .connection = connection});
    } else {
      connection->end();
    }
  }
}

}  // namespace acc::launcher
