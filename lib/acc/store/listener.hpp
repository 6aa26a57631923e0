// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "acc/store/network.hpp"

namespace acc::launcher {

/// Listens on one address and accepts connections. Child processes inherit neither the listening socket nor
/// the connections.
class Listener : public std::enable_shared_from_this<Listener> {
 public:
  using Accepted = std::function<void(net::tcp::socket)>;

  /// `acceptor` is listening and non-blocking.
  explicit Listener(net::tcp::acceptor acceptor);

  /// Calls `accepted` for each connection from now on. If there is no descriptor or memory left, warns of it
  /// once and tries again a little later.
  void start(Accepted accepted);

  /// Closes the connections in the backlog, which were not accepted yet.
  void discard_waiting();

  void close();
  std::uint16_t port() const;

 private:
  void wait();
  void accept_waiting();
  void wait_a_little();
  void report_refusal(int error);

  net::tcp::acceptor acceptor_;
  net::steady_timer pause_;
  Accepted accepted_;
  bool refusal_reported_ = false;
};

/// Listens on all `addresses` (numeric, v4 or v6) with one port number; port 0 takes one that is free on all
/// of them. `::` includes v4 unless a v4 address is given, too. Throws Error{usage} for an invalid address,
/// Error{system} with address and port if the system refuses.
std::vector<std::shared_ptr<Listener>> listen_on(net::io_context& loop,
                                                 const std::vector<std::string>& addresses,
                                                 std::uint16_t port);

}  // namespace acc::launcher
