// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
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
  /// How long a client of the job may take to greet. PyTorch's do at once; who stays silent gives its
  /// descriptor back.
  std::chrono::milliseconds greeting_patience = std::chrono::seconds(30);
  /// The same for strangers, of whom so many may be silent: one more, and the oldest goes.
  std::chrono::milliseconds stranger_patience = std::chrono::seconds(5);
  std::size_t max_silent_strangers = 64;
  /// What strangers may hold, all of them together, and what they may keep in the store.
  std::size_t max_stranger_bytes = std::size_t{16} << 20U;
  /// Connections of strangers; one more, and the one that was silent for longest goes.
  std::size_t max_strangers = 4096;
};

/// PyTorch's TCPStore served to unmodified clients of torch 2.4 to 2.15, in C++ and Python, on the caller's
/// event loop. A client that sends bad bytes, half a message or nothing costs its own connection alone, and
/// one whose requests are long holds up nobody else. A stranger, who need not be of the job, cannot fill this
/// process: it is one by its address, or as another user of this machine.
class StoreServer {
 public:
  /// Listens when it returns; `loop` must outlive it. Throws Error{system} naming address and port when it
  /// cannot listen, Error{usage} for what is no address.
  StoreServer(boost::asio::io_context& loop, StoreServerOptions options);
  ~StoreServer();
  StoreServer(const StoreServer&) = delete;
  StoreServer& operator=(const StoreServer&) = delete;

  std::uint16_t port() const;

  /// Whose connections are taken from now on; at first everybody's, as members of the job. Those that are
  /// there stay. Throws Error{usage} for what is no address.
  void serve(const StoreClients& clients);

  /// Ends every connection and forgets every key, as if newly made; the port stays. For a restart: the next
  /// attempt must not meet the keys of the one before.
  void reset();

  /// As a client's `set`, without a client. No client can change or delete the key.
  void set(std::string key, std::string value);
  /// Absent when there is no such key.
  std::optional<std::string> get(const std::string& key) const;

  /// Forgets every key and queue for which `kept` is false; connections and those who wait stay.
  void forget_except(const std::function<bool(std::string_view key)>& kept);

  std::size_t connections() const;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace acc::launcher
