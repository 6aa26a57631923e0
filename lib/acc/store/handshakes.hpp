// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <cstddef>
#include <deque>
#include <memory>

#include "acc/base/event_loop.hpp"

namespace acc::launcher {

/// A connection whose client has to identify itself first.
class PendingConnection {
 public:
  virtual ~PendingConnection() = default;

  /// The connection is open and its client has not identified itself.
  virtual bool is_pending() const = 0;
  /// Received bytes have not been read yet.
  virtual bool has_unread() = 0;
  virtual void end() = 0;
};

/// Closes connections whose clients do not identify themselves in time, so that silent ones do not occupy
/// descriptors and memory. Uses one timer for all.
class Handshakes : public std::enable_shared_from_this<Handshakes> {
 public:
  struct Limits {
    std::chrono::milliseconds timeout = std::chrono::seconds(5);
    /// The number of pending connections; for one more the oldest is closed.
    std::size_t max_pending = SIZE_MAX;
  };

  Handshakes(net::io_context& loop, const Limits& limits);

  /// Starts the timeout of `connection`. It is extended while received bytes are unread, since then this
  /// process is late, not the client.
  void expect(const std::shared_ptr<PendingConnection>& connection);

  /// Stops; no connection is closed after this call.
  void close();

 private:
  using Clock = net::steady_clock;
  struct Pending {
    Clock::time_point deadline = {};
    std::weak_ptr<PendingConnection> connection = {};
  };

  void wait();
  void end_late();
  void make_room();

  net::steady_timer timer_;
  Limits limits_;
  std::deque<Pending> pending_ = {};
  bool waiting_ = false;
};

}  // namespace acc::launcher
