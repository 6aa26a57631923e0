// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "acc/base/event_loop.hpp"
#include "acc/store/admission.hpp"

namespace acc::launcher {

/// Cooperative scheduling of long tasks on an event loop: a time slice of one task, then the other ready
/// handlers, then a slice of the next task. So short work waits for one slice at most.
class RoundRobin : public std::enable_shared_from_this<RoundRobin> {
 public:
  using Clock = net::steady_clock;
  /// Works until about `deadline`. Returns whether there is more to do.
  using Slice = std::function<bool(Clock::time_point deadline)>;

  explicit RoundRobin(net::io_context& loop) : loop_(loop) {}

  /// Calls `slice` from the event loop until it returns false.
  void add(Slice slice);

  /// No slice is called after this.
  void close() { tasks_.clear(); }

 private:
  void run();

  net::io_context& loop_;
  std::deque<Slice> tasks_ = {};
  bool running_ = false;
};

/// The addresses and limits of a StoreServer.
struct StoreServerOptions {
  /// Addresses to listen on, numeric v4 or v6; by default loopback alone.
  std::vector<std::string> addresses = {"127.0.0.1"};
  /// 0: a free port.
  std::uint16_t port = 0;
  /// Maximum length of keys and values; a longer one ends the connection.
  std::size_t max_key_bytes = std::size_t{1} << 20U;
  std::size_t max_value_bytes = std::size_t{1} << 30U;
  /// Maximum number of keys in one request.
  std::size_t max_keys = std::size_t{1} << 20U;
  /// Maximum size of one request, all keys and values together.
  std::size_t max_request_bytes = std::size_t{1} << 31U;
  /// Maximum memory of replies that a client does not read; more ends the connection. Long values count
  /// little, since they are not copied for each reader.
  std::size_t max_unsent_bytes = std::size_t{1} << 28U;
  /// A connection of the job is closed if its first request, which PyTorch's clients send at once, does not
  /// arrive in this time.
  std::chrono::milliseconds handshake_timeout = std::chrono::seconds(30);
  /// The same for strangers, and the maximum number of them that may be pending: for one more the oldest is
  /// closed.
  std::chrono::milliseconds stranger_handshake_timeout = std::chrono::seconds(5);
  std::size_t max_pending_strangers = 64;
  /// Maximum memory that strangers together may occupy in connections, and again in the store.
  std::size_t max_stranger_bytes = std::size_t{16} << 20U;
  /// Maximum number of strangers; for one more the one that was idle for longest is closed.
  std::size_t max_strangers = 4096;
};

/// PyTorch's TCPStore served to unmodified clients of torch 2.4 to 2.15, in C++ and Python, on the caller's
/// event loop. A client that sends invalid bytes, half a request or nothing loses only its own connection,
/// and long requests do not delay other clients. A stranger is a client that need not be of the job, by its
/// address or as another user of this machine; strangers cannot exhaust this process.
class StoreServer {
 public:
  /// Listens when it returns; `loop` must outlive it. Throws Error{system} naming address and port when it
  /// cannot listen, Error{usage} for an invalid address.
  StoreServer(net::io_context& loop, StoreServerOptions options);
  ~StoreServer();
  StoreServer(const StoreServer&) = delete;
  StoreServer& operator=(const StoreServer&) = delete;

  std::uint16_t port() const;

  /// Sets the clients that are accepted from now on; initially all are, as members of the job. Open
  /// connections stay. Throws Error{usage} for an invalid address.
  void serve(const StoreClients& clients);

  /// Closes every connection and removes every key; the port stays. For a restart: the next attempt must not
  /// see the keys of the previous one.
  void reset();

  /// Sets a key that no client can change or delete.
  void set(std::string key, std::string value);
  /// nullopt when the key does not exist.
  std::optional<std::string> get(const std::string& key) const;

  /// Removes every key and queue for which `kept` is false; connections and waits stay.
  void forget_except(const std::function<bool(std::string_view key)>& kept);

  std::size_t connections() const;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace acc::launcher
