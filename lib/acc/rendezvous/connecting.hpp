// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/steady_timer.hpp>
#include <chrono>
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "acc/rendezvous/job_secret.hpp"
#include "acc/rendezvous/node_connection.hpp"

namespace acc::launcher {

/// One attempt to connect to another node.
class Connecting : public std::enable_shared_from_this<Connecting> {
 public:
  /// The connection, or why there is none.
  using Done = std::function<void(std::optional<boost::asio::ip::tcp::socket>, const std::string& why)>;

  explicit Connecting(boost::asio::io_context& loop);

  /// `host` is a name or an address, v4 or v6. Calls `done` once, within `timeout`, never from within.
  void start(const std::string& host, std::uint16_t port, std::chrono::milliseconds timeout, Done done);
  /// `done` is not called any more.
  void cancel();
  /// The machine answered that nothing listens there.
  bool was_refused() const { return refused_; }

 private:
  void connect(const boost::asio::ip::tcp::resolver::results_type& endpoints);
  void finish(bool connected, const std::string& why);

  boost::asio::ip::tcp::resolver resolver_;
  boost::asio::ip::tcp::socket socket_;
  boost::asio::steady_timer timer_;
  Done done_ = {};
  bool refused_ = false;
};

/// Says `hello` on a connection that this node has made and started: without a secret at once, else when the
/// other side has proven to know it. Then, during the call or later, calls `done`; with false when the other
/// side has not proven it, has heard nothing and is to be believed nothing. When the connection is lost
/// before, calls `lost`.
void introduce(const std::shared_ptr<NodeConnection>& connection, const JobSecret& secret, const Hello& hello,
               std::function<void(bool is_proven)> done, std::function<void(ConnectionLoss)> lost);

}  // namespace acc::launcher
