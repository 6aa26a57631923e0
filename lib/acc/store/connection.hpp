// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <boost/asio/ip/tcp.hpp>
#include <cstddef>
#include <memory>
#include <span>
#include <string>
#include <string_view>

#include "acc/store/protocol.hpp"
#include "acc/store/replies.hpp"
#include "acc/store/waits.hpp"

namespace acc {

/// One client of the store: bytes in, requests to the owner, replies out. It reads no further while its
/// client leaves replies unread, and ends when the client does, breaks the protocol or costs too much.
class Connection : public std::enable_shared_from_this<Connection> {
 public:
  /// Whom requests go to. Must outlive the connection's last call, which is closed() or the caller's close().
  class Owner {
   public:
    /// Carries out `request`; false ends the connection.
    virtual bool handle(ClientId client, Request request, Replies& replies) = 0;
    /// The client is gone.
    virtual void closed(ClientId client) = 0;
    /// Room to read into, shared by all connections.
    virtual std::span<char> scratch() = 0;

   protected:
    ~Owner() = default;
  };

  struct Limits {
    RequestLimits request = {};
    std::size_t most_unsent_bytes = std::size_t{1} << 28U;
  };

  Connection(boost::asio::ip::tcp::socket socket, ClientId id, Owner& owner, const Limits& limits);

  void start();
  /// Tells the client that its wait is over.
  void wake();
  /// Ends it when the client has not greeted and nothing of it waits to be read. True: it has not greeted
  /// yet, and was left alone.
  bool end_if_silent();
  /// Ends it without a word to the owner.
  void close();

 private:
  void read();
  void received(std::size_t bytes);
  void consume(std::string_view bytes);
  void input_ended(const boost::system::error_code& error);
  void flush();
  void flush_when_writable();
  void resume();
  void fail();

  boost::asio::ip::tcp::socket socket_;
  ClientId id_;
  Owner& owner_;
  std::size_t most_unsent_bytes_;
  RequestParser parser_;
  Replies replies_;
  std::string unparsed_;  // what was read when reading had to pause
  std::array<char, 1024> first_ =
      {};  // most requests fit; the rest of a long one goes through the scratch room
  bool open_ = true;
  bool input_ended_ = false;
  bool paused_ = false;
  bool writing_ = false;
  bool unreachable_ = false;  // writing failed; what was sent before that is still read
};

}  // namespace acc
