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

namespace acc::launcher {

/// One attempt to connect to another node.
class Connecting : public std::enable_shared_from_this<Connecting> {
 public:
  /// The connection, or why there is none.
  using Done = std::function<void(std::optional<boost::asio::ip::tcp::socket>, const std::string& why)>;

  explicit Connecting(boost::asio::io_context& loop);

  /// `host` is a name or an address, v4 or v6. Calls `done` once, within `patience`, never from within.
  void start(const std::string& host, std::uint16_t port, std::chrono::milliseconds patience, Done done);
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

}  // namespace acc::launcher
