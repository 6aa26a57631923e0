// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace boost::asio {
class io_context;
}

namespace acc {

/// Where a StoreServer listens, and what a client may cost.
struct StoreServerOptions {
  /// Addresses to listen on, v4 or v6 in numbers. Default: loopback alone.
  std::vector<std::string> addresses = {"127.0.0.1"};
  /// 0: a free port, chosen and kept.
  std::uint16_t port = 0;
  /// Longest key and longest value that a client may send; a longer one ends its connection.
  std::size_t most_key_bytes = std::size_t{1} << 20U;
  std::size_t most_value_bytes = std::size_t{1} << 30U;
  /// Most keys in one request.
  std::size_t most_keys = std::size_t{1} << 20U;
  /// Most bytes in one request, all its keys and values together.
  std::size_t most_request_bytes = std::size_t{1} << 31U;
  /// Memory that replies may take which a client does not read; past it the connection ends. Long values
  /// count little, since they are not copied for each reader.
  std::size_t most_unsent_bytes = std::size_t{1} << 28U;
  /// How long a client may take to greet. PyTorch's do at once; who stays silent gives its descriptor back.
  std::chrono::milliseconds greeting_patience = std::chrono::seconds(30);
};

/// PyTorch's TCPStore served to unmodified clients of torch 2.4 to 2.15, in C++ and Python, on the caller's
/// event loop. A client that sends bad bytes, half a message or nothing costs its own connection alone.
class StoreServer {
 public:
  /// Listens when it returns; `loop` must outlive it. Throws Error{system} naming address and port when it
  /// cannot listen, Error{usage} for what is no address.
  StoreServer(boost::asio::io_context& loop, StoreServerOptions options);
  ~StoreServer();
  StoreServer(const StoreServer&) = delete;
  StoreServer& operator=(const StoreServer&) = delete;

  std::uint16_t port() const;

  /// From the first call on, connections from other addresses than the allowed ones and this machine's own
  /// are closed before anything is read. v4 or v6 in numbers; throws Error{usage} for what is no address.
  void allow(const std::string& address);
  /// From everywhere again, as before the first allow().
  void allow_all();

  /// Ends every connection and forgets every key, as if newly made; the port stays. For a restart: the next
  /// attempt must not meet the keys of the one before.
  void reset();

  /// As a client's `set`, without a client.
  void set(std::string key, std::string value);

  /// Forgets every key and queue for which `kept` is false; connections and those who wait stay.
  void forget_except(const std::function<bool(std::string_view key)>& kept);

  std::size_t connections() const;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace acc
