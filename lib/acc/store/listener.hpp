// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <boost/asio/ip/address.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/steady_timer.hpp>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

namespace acc::launcher {

/// Listens on one address and accepts connections. Child processes inherit neither the listening socket nor
/// the connections.
class Listener : public std::enable_shared_from_this<Listener> {
 public:
  using Accepted = std::function<void(boost::asio::ip::tcp::socket)>;

  /// `acceptor` is listening and non-blocking.
  explicit Listener(boost::asio::ip::tcp::acceptor acceptor);

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

  boost::asio::ip::tcp::acceptor acceptor_;
  boost::asio::steady_timer pause_;
  Accepted accepted_;
  bool refusal_reported_ = false;
};

/// Listens on all `addresses` (numeric, v4 or v6) with one port number; port 0 takes one that is free on all
/// of them. `::` includes v4 unless a v4 address is given, too. Throws Error{usage} for an invalid address,
/// Error{system} with address and port if the system refuses.
std::vector<std::shared_ptr<Listener>> listen_on(boost::asio::io_context& loop,
                                                 const std::vector<std::string>& addresses,
                                                 std::uint16_t port);

}  // namespace acc::launcher
