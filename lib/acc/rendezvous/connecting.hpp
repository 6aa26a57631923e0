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

  /// `host` is a name or an address, v4 or v6. Calls `done` once, within `timeout`, never during the call.
  void start(const std::string& host, std::uint16_t port, std::chrono::milliseconds timeout, Done done);
  /// `done` is not called after this.
  void cancel();
  /// The connection was refused: the machine answers, and nothing listens at the port.
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

/// Sends `hello` on a connection that this node has made and started; with a secret, only once the other side
/// has proven that it knows it. Then calls `done`, during the call or later; with false if the other side has
/// not proven it: it was sent nothing and must not be trusted. Calls `lost` if the connection is lost before
/// that.
void introduce(const std::shared_ptr<NodeConnection>& connection, const JobSecret& secret, const Hello& hello,
               std::function<void(bool is_proven)> done, std::function<void(ConnectionLoss)> lost);

}  // namespace acc::launcher
