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

/// Listens on one address, and hands over connections as they come. Neither the listening sockets nor the
/// connections are inherited by programs that are started.
class Listener : public std::enable_shared_from_this<Listener> {
 public:
  using Accepted = std::function<void(boost::asio::ip::tcp::socket)>;

  /// `acceptor` listens already and is non-blocking.
  explicit Listener(boost::asio::ip::tcp::acceptor acceptor);

  /// From now on each connection goes to `accepted`. When the machine has no descriptor or memory left, it
  /// tries again a little later.
  void start(Accepted accepted);

  /// Closes the connections that came before this call and were not handed over yet.
  void discard_waiting();

  void close();
  std::uint16_t port() const;

 private:
  void wait();
  void accept_waiting();
  void wait_a_little();

  boost::asio::ip::tcp::acceptor acceptor_;
  boost::asio::steady_timer pause_;
  Accepted accepted_;
};

/// Listens on all `addresses` (v4 or v6, in numbers) with one port number; port 0 takes one that is free on
/// all of them. `::` includes v4 unless a v4 address is named too. Throws Error{usage} for what is not an
/// address, Error{system} naming address and port when the machine refuses.
std::vector<std::shared_ptr<Listener>> listen_on(boost::asio::io_context& loop,
                                                 const std::vector<std::string>& addresses,
                                                 std::uint16_t port);

}  // namespace acc::launcher
