// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "acc/base/running_clock.hpp"
#include "acc/store/connecting.hpp"
#include "acc/store/network.hpp"

namespace acc::launcher {

/// The address of a store.
struct StoreAddress {
  std::string host = "127.0.0.1";  ///< a name or an address, v4 or v6
  std::uint16_t port = 0;

  friend bool operator==(const StoreAddress&, const StoreAddress&) = default;
};

/// `host:port`, a v6 address in brackets.
std::string to_string(const StoreAddress& address);

/// Connects to a store, and tries again with growing pauses until one answers or the deadline is over. Only a
/// reply to a first request shows that it is a store: a port may be open before its program serves it. Each
/// attempt begins with another address of the host: behind the one that answered first may be something else.
class Dialer : public std::enable_shared_from_this<Dialer> {
 public:
  /// Receives why an attempt failed.
  using Failed = std::function<void(const std::string& reason)>;
  /// Receives the connection, or nullopt and why the last attempt failed.
  using Done = std::function<void(std::optional<net::tcp::socket>, const std::string& reason)>;

  explicit Dialer(net::io_context& loop);

  /// Calls `failed` after each failed attempt and `done` once, never during the call.
  void start(StoreAddress address, RunningClock::time_point deadline, Failed failed, Done done);
  /// No handler is called after this.
  void cancel();

 private:
  void start_attempt();
  void check_store(net::tcp::socket socket);
  void failed(std::string reason);
  void finish(std::optional<net::tcp::socket> socket, const std::string& reason);
  /// Whether a handler belongs to an earlier attempt.
  bool stale(std::uint64_t attempt) const { return attempt != attempt_ || !done_; }

  net::io_context& loop_;
  std::shared_ptr<Connecting> connecting_ = {};
  net::tcp::socket socket_;
  RunningTimer timeout_;  // of one attempt
  RunningTimer pause_;
  StoreAddress address_ = {};
  RunningClock::time_point deadline_ = {};
  std::chrono::milliseconds next_pause_ = {};
  Failed failed_ = {};
  Done done_ = {};
  std::uint64_t attempt_ = 0;
  std::size_t attempts_ = 0;  // that were started
  std::string request_ = {};
  char reply_ = 0;
};

}  // namespace acc::launcher
