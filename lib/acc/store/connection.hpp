// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <boost/asio/ip/tcp.hpp>
#include <chrono>
#include <cstddef>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "acc/store/greetings.hpp"
#include "acc/store/protocol.hpp"
#include "acc/store/replies.hpp"
#include "acc/store/service.hpp"

namespace acc::launcher {

/// The connection of one client: parses requests, passes them to the owner and sends the replies. Long work
/// is time-sliced with that of other clients. It stops reading while replies are unread, and closes when the
/// client closes, violates the protocol or exceeds a limit.
class Connection : public Guest, public std::enable_shared_from_this<Connection> {
 public:
  using Clock = std::chrono::steady_clock;

  /// The receiver of requests. Must outlive the connection's last call, which is closed() or the caller's
  /// close().
  class Owner {
   public:
    /// Carries out some of `work`, as Service does.
    virtual Service::Outcome carry_out(ClientId client, Work& work, Replies& replies) = 0;
    /// The connection is closed.
    virtual void closed(ClientId client) = 0;
    /// Calls the connection's work_until() in its turns until that returns false.
    virtual void schedule(std::shared_ptr<Connection> connection) = 0;
    /// The connection holds about this much memory. May close it, or others.
    virtual void holds(ClientId client, std::size_t bytes) = 0;
    /// The read buffer, shared by all connections.
    virtual std::span<char> scratch() = 0;

   protected:
    ~Owner() = default;
  };

  struct Limits {
    RequestLimits request = {};
    std::size_t max_unsent_bytes = std::size_t{1} << 28U;
    /// Whether the owner is told how much memory the connection holds.
    bool is_counted = false;
  };

  Connection(boost::asio::ip::tcp::socket socket, ClientId id, Owner& owner, const Limits& limits);

  /// Reads what has come already.
  void start();
  /// Tells the client that its wait is over.
  void wake();
  /// Works on what the client has sent until about `until`. True: there is more.
  bool work_until(Clock::time_point until);
  /// Closes it without calling the owner.
  void close();

  bool is_awaited() const override { return open_ && !parser_.validated(); }
  bool has_unread() override;
  void end() override;

 private:
  enum class Next {
    read,   ///< all that came is done
    turn,   ///< some of it is left
    drain,  ///< the client is to read its replies first
    ended,
  };

  void read();
  void received(std::size_t bytes);
  Next consume(std::string_view bytes, Clock::time_point until);
  Next consume_some(std::string_view bytes, Clock::time_point until);
  void count();
  void input_ended(const boost::system::error_code& error);
  void flush();
  void flush_when_writable();
  void resume();
  void fail();

  boost::asio::ip::tcp::socket socket_;
  ClientId id_;
  Owner& owner_;
  std::size_t max_unsent_bytes_;
  bool is_counted_;
  RequestParser parser_;
  Replies replies_;
  std::optional<Work> work_ = {};  // begun, and not done
  std::string unparsed_;           // what was read when work had to pause
  std::array<char, 1024> first_ =
      {};  // most requests fit; the rest of a long one goes through the scratch room
  bool consuming_ = false;
  bool open_ = true;
  bool input_ended_ = false;
  bool paused_ = false;
  bool writing_ = false;
  bool unreachable_ = false;  // writing failed; what was sent before that is still read
  bool wake_due_ = false;     // when the reply that is being made is whole
};

}  // namespace acc::launcher
