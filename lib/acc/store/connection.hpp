// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <chrono>
#include <cstddef>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "acc/store/handshakes.hpp"
#include "acc/store/network.hpp"
#include "acc/store/protocol.hpp"
#include "acc/store/replies.hpp"
#include "acc/store/service.hpp"

namespace acc::launcher {

/// The connection of one client: parses requests, passes them to the owner and sends the replies. Long work
/// is time-sliced with that of other clients. It stops reading while replies are unread, and closes when the
/// client closes, violates the protocol or exceeds a limit.
class Connection : public PendingConnection, public std::enable_shared_from_this<Connection> {
 public:
  using Clock = net::steady_clock;

  /// Receives the requests. Must outlive the connection's last call, which is closed() or the caller's
  /// close().
  class Owner {
   public:
    /// Carries out a part of `work`, as Service does.
    virtual Service::Outcome carry_out(ClientId client, Work& work, Replies& replies) = 0;
    /// The connection is closed.
    virtual void closed(ClientId client) = 0;
    /// Calls the connection's work_until() in time slices until that returns false.
    virtual void schedule(std::shared_ptr<Connection> connection) = 0;
    /// The connection holds about `bytes` of memory. May close it, or others.
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

  Connection(net::tcp::socket socket, ClientId id, Owner& owner, const Limits& limits);

  /// Reads what has arrived, and begins to wait for more.
  void start();
  /// Sends the end of its wait to the client.
  void wake();
  /// Handles requests until about `deadline`. Returns whether there is more to do.
  bool work_until(Clock::time_point deadline);
  /// Closes it without calling the owner.
  void close();

  bool is_pending() const override { return open_ && !parser_.validated(); }
  bool has_unread() override;
  void end() override;

 private:
  enum class Next {
    read,        ///< all requests are done: read more
    next_slice,  ///< requests are left for the next time slice
    drain,       ///< the client must read its replies first
    ended,
  };

  void read();
  void on_received(std::size_t bytes);
  Next consume(std::string_view bytes, Clock::time_point deadline);
  Next consume_some(std::string_view bytes, Clock::time_point deadline);
  void report_memory();
  void input_ended(const boost::system::error_code& error);
  void flush();
  void flush_when_writable();
  void resume();
  void fail();

  net::tcp::socket socket_;
  ClientId id_;
  Owner& owner_;
  std::size_t max_unsent_bytes_;
  bool is_counted_;
  RequestParser parser_;
  Replies replies_;
  std::optional<Work> work_ = {};  // begun and not finished
  std::string unparsed_;           // what was read when work had to pause
  std::array<char, 1024> first_ =
      {};  // most requests fit; the rest of a long one goes through the scratch room
  bool consuming_ = false;
  bool open_ = true;
  bool input_ended_ = false;
  bool paused_ = false;
  bool writing_ = false;
  bool write_failed_ = false;  // writing failed; what was sent before that is still read
  bool wake_due_ = false;      // send the wake-up after the current reply
};

}  // namespace acc::launcher
