// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "acc/base/running_clock.hpp"
#include "acc/store/network.hpp"
#include "acc/store/resolver.hpp"

namespace acc::launcher {

/// One attempt to connect to a host. Of its addresses each is tried: the next one as soon as one has failed,
/// or has not answered for a moment, and the first that answers is taken.
class Connecting : public std::enable_shared_from_this<Connecting> {
 public:
  /// The connection, or why there is none.
  using Done = std::function<void(std::optional<net::tcp::socket>, const std::string& reason)>;

  explicit Connecting(net::io_context& loop, Resolver::LookUp look_up = net::look_up);

  /// `host` is a name or an address, v4 or v6. Calls `done` once, within `timeout`, never during the call.
  /// `first` is the index of the address that is tried first; indices start again at the end.
  void start(const std::string& host, std::uint16_t port, std::chrono::milliseconds timeout, Done done,
             std::size_t first = 0);
  /// `done` is not called after this.
  void cancel();
  /// The connection was refused at each address: the machine answers, and nothing listens at the port.
  bool was_refused() const { return refused_; }

 private:
  void on_resolved(const HostLookup& host, std::uint16_t port, std::size_t first);
  void try_next();
  void on_answer(std::size_t attempt, const boost::system::error_code& error);
  void finish(std::optional<net::tcp::socket> socket, const std::string& reason);
  void close();

  net::io_context& loop_;
  Resolver resolver_;
  RunningTimer timer_;      // of the whole
  net::steady_timer next_;  // until another address is tried
  std::vector<net::tcp::endpoint> endpoints_ = {};
  // One for each endpoint that was tried.
  std::vector<net::tcp::socket> sockets_ = {};
  std::size_t failed_ = 0;
  Done done_ = {};
  bool refused_ = false;
};

}  // namespace acc::launcher
