// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <boost/asio/buffer.hpp>
#include <boost/asio/error.hpp>
#include <boost/asio/ip/address.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/socket_base.hpp>
#include <boost/system/error_code.hpp>
#include <memory>
#include <string>
#include <utility>

#include "acc/base/event_loop.hpp"
#include "acc/base/own_addresses.hpp"
#include "simulation/network.hpp"

/// The names of lib/acc/store/network.hpp, simulated.
namespace acc::net {

namespace error = boost::asio::error;
namespace ip = boost::asio::ip;
using boost::asio::buffer;
using boost::asio::const_buffer;
using boost::asio::socket_base;

// Of the machine of the process that runs now.
OwnNames own_names();
std::string address_towards(const std::string& address);
HostLookup look_up(const std::string& host);

struct user_timeout {
  explicit user_timeout(int milliseconds) : time(milliseconds) {}
  std::chrono::milliseconds time;
};

struct tcp {
  using endpoint = boost::asio::ip::tcp::endpoint;
  using no_delay = boost::asio::ip::tcp::no_delay;

  class socket {
   public:
    static constexpr auto wait_write = boost::asio::socket_base::wait_write;
    static constexpr auto shutdown_both = boost::asio::socket_base::shutdown_both;
    static constexpr auto shutdown_send = boost::asio::socket_base::shutdown_send;

    explicit socket(io_context& loop) : loop_(&loop) {}
    explicit socket(const io_context::executor_type& executor) : loop_(&executor.context()) {}
    /// One that was accepted.
    socket(io_context& loop, std::shared_ptr<simulation::Side> side) : loop_(&loop), side_(std::move(side)) {}
    socket(socket&& other) noexcept : loop_(other.loop_), side_(std::exchange(other.side_, {})) {}
    socket& operator=(socket&& other) noexcept {
      release();
      loop_ = other.loop_;
      side_ = std::exchange(other.side_, {});
      return *this;
    }
    ~socket() { release(); }

    io_context::executor_type get_executor() { return loop_->get_executor(); }

    template <class Handler>
    void async_connect(const endpoint& to, Handler handler) {
      release();
      side_ = simulation::Network::current().new_side(*loop_);
      side_->connect(
          to, [handler = std::move(handler)](error_code error, std::size_t) mutable { handler(error); });
    }
    template <class Handler>
    void async_read_some(const boost::asio::mutable_buffer& to, Handler handler) {
      if (!side_) return abort(std::move(handler));
      side_->read(static_cast<char*>(to.data()), to.size(), std::move(handler));
    }
    std::size_t read_some(const boost::asio::mutable_buffer& to, error_code& error) {
      if (!side_) return not_open(error);
      return side_->read_now(static_cast<char*>(to.data()), to.size(), error);
    }
    template <class Buffers>
    std::size_t write_some(const Buffers& buffers, error_code& error) {
      if (!side_) return not_open(error);
      std::string bytes;
      for (const const_buffer& one : buffers) bytes.append(static_cast<const char*>(one.data()), one.size());
      return side_->write_now(bytes, error);
    }
    template <class Handler>
    void async_write(const const_buffer& from, Handler handler) {
      if (!side_) return abort(std::move(handler));
      side_->write({static_cast<const char*>(from.data()), from.size()}, std::move(handler));
    }
    template <class Handler>
    void async_wait(boost::asio::socket_base::wait_type, Handler handler) {
      side_->wait_writable(
          [handler = std::move(handler)](error_code error, std::size_t) mutable { handler(error); });
    }
    std::size_t available(error_code& error) const {
      error = side_ ? error_code() : error::bad_descriptor;
      return side_ ? side_->available() : 0;
    }
    template <class Option>
    void set_option(const Option& option, error_code& error) {
      error = side_ ? error_code() : error::bad_descriptor;
      if constexpr (std::is_same_v<Option, user_timeout>) {
        if (side_) side_->set_user_timeout(option.time);
      }
    }
    void non_blocking(bool, error_code& error) { error = {}; }
    endpoint local_endpoint(error_code& error) const { return end_of(&simulation::Side::local, error); }
    endpoint remote_endpoint(error_code& error) const { return end_of(&simulation::Side::remote, error); }
    // close() follows that of both.
    void shutdown(boost::asio::socket_base::shutdown_type what, error_code&) {
      if (side_ && what == shutdown_send) side_->end_sending();
    }
    void close(error_code& error) {
      error = {};
      release();
    }

   private:
    static std::size_t not_open(error_code& error) {
      error = error::bad_descriptor;
      return 0;
    }
    template <class Handler>
    void abort(Handler handler) {
      loop_->post(
          [handler = std::move(handler)]() mutable { handler(error_code(error::bad_descriptor), 0); });
    }
    endpoint end_of(const endpoint& (simulation::Side::*end)() const, error_code& error) const {
      error = side_ && side_->is_connected() ? error_code() : error::not_connected;
      return error ? endpoint() : (side_.get()->*end)();
    }
    void release() {
      if (const auto side = std::exchange(side_, {})) side->close();
    }

    io_context* loop_;
    std::shared_ptr<simulation::Side> side_ = {};
  };

  class acceptor {
   public:
    acceptor(io_context& loop, std::shared_ptr<simulation::Port> port)
        : loop_(&loop), port_(std::move(port)) {}
    acceptor(acceptor&& other) noexcept : loop_(other.loop_), port_(std::exchange(other.port_, {})) {}
    acceptor& operator=(acceptor&&) = delete;
    ~acceptor() { close(); }

    io_context::executor_type get_executor() { return loop_->get_executor(); }
    bool is_open() const { return port_ != nullptr; }
    endpoint local_endpoint() const { return port_->endpoint; }
    simulation::Port& port() { return *port_; }
    void close() {
      if (const auto port = std::exchange(port_, {})) simulation::Network::current().close(port);
    }

   private:
    io_context* loop_;
    std::shared_ptr<simulation::Port> port_;
  };
};

template <class Handler>
void async_write(tcp::socket& socket, const const_buffer& bytes, Handler handler) {
  socket.async_write(bytes, std::move(handler));
}

/// Of a buffer of one byte, which is all that is read so.
template <class Handler>
void async_read(tcp::socket& socket, const boost::asio::mutable_buffer& byte, Handler handler) {
  socket.async_read_some(byte, std::move(handler));
}

}  // namespace acc::net
