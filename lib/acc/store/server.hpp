// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <boost/asio/io_context.hpp>
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

#include "acc/store/admission.hpp"

namespace boost::asio {
class io_context;
}

namespace acc::launcher {

/// Cooperative scheduling of long tasks on an event loop: a time slice of one task, then the other ready
/// handlers, then a slice of the next task. So short work waits for one slice at most.
class Turns : public std::enable_shared_from_this<Turns> {
 public:
  using Clock = std::chrono::steady_clock;
  /// Works until about `until`. True: there is more to do.
  using Slice = std::function<bool(Clock::time_point until)>;

  explicit Turns(boost::asio::io_context& loop) : loop_(loop) {}

  /// `slice` is called from the loop, again and again until it returns false.
  void add(Slice slice);

  /// No slice is called after this.
  void close() { tasks_.clear(); }

 private:
  void run();

  boost::asio::io_context& loop_;
  std::deque<Slice> tasks_ = {};
  bool running_ = false;
};

/// The addresses and limits of a StoreServer.
struct StoreServerOptions {
  /// Addresses to listen on, v4 or v6 in numbers. Default: loopback alone.
  std::vector<std::string> addresses = {"127.0.0.1"};
  /// 0: a free port, chosen and kept.
  std::uint16_t port = 0;
  /// Longest key and longest value that a client may send; a longer one ends its connection.
  std::size_t max_key_bytes = std::size_t{1} << 20U;
  std::size_t max_value_bytes = std::size_t{1} << 30U;
  /// Most keys in one request.
  std::size_t max_keys = std::size_t{1} << 20U;
  /// Most bytes in one request, all its keys and values together.
  std::size_t max_request_bytes = std::size_t{1} << 31U;
  /// Memory that replies may take which a client does not read; past it the connection ends. Long values
  /// count little, since they are not copied for each reader.
  std::size_t max_unsent_bytes = std::size_t{1} << 28U;
  /// The time in which a client of the job has to send its first request, as PyTorch's do at once; then its
  /// connection is closed.
  std::chrono::milliseconds greeting_timeout = std::chrono::seconds(30);
  /// The same for clients from elsewhere, and how many of them may be pending: for one more the oldest is
  /// closed.
  std::chrono::milliseconds stranger_greeting_timeout = std::chrono::seconds(5);
  std::size_t max_silent_strangers = 64;
  /// What strangers may hold, all of them together, and what they may keep in the store.
  std::size_t max_stranger_bytes = std::size_t{16} << 20U;
  /// Connections from elsewhere; for one more the one that was idle for longest is closed.
  std::size_t max_strangers = 4096;
};

/// PyTorch's TCPStore served to unmodified clients of torch 2.4 to 2.15, in C++ and Python, on the caller's
/// event loop. A client that sends bad bytes, half a message or nothing costs its own connection alone, and
/// one whose requests are long holds up nobody else. A stranger, who need not be of the job, cannot fill this
/// process: it is one by its address, or as another user of this machine.
class StoreServer {
 public:
  /// Listens when it returns; `loop` must outlive it. Throws Error{system} naming address and port when it
  /// cannot listen, Error{usage} for an invalid address.
  StoreServer(boost::asio::io_context& loop, StoreServerOptions options);
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

  /// As a client's `set`, without a client. No client can change or delete the key.
  void set(std::string key, std::string value);
  /// nullopt when the key does not exist.
  std::optional<std::string> get(const std::string& key) const;

  /// Forgets every key and queue for which `kept` is false; connections and those who wait stay.
  void forget_except(const std::function<bool(std::string_view key)>& kept);

  std::size_t connections() const;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace acc::launcher
