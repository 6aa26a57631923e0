// SPDX-License-Identifier: Apache-2.0
// Another body of rendezvous/etcd_curl.cpp: without a thread and without HTTP, to the simulated etcd.
#include "acc/rendezvous/etcd_curl.hpp"

#include <array>
#include <deque>
#include <utility>

#include "acc/store/network.hpp"
#include "simulation/etcd.hpp"
#include "simulation/network.hpp"

namespace acc::launcher {

struct EtcdCurl::Impl : std::enable_shared_from_this<Impl> {
  struct Job {
    EtcdRequest request;
    Handler handler;
  };
  /// The first of the jobs, on a connection of its own.
  struct Exchange {
    explicit Exchange(net::io_context& loop) : socket(loop), timeout(loop) {}

    net::tcp::socket socket;
    net::steady_timer timeout;
    std::array<char, 4096> piece = {};
    std::string request = {};
    std::string reply = {};
  };
  using Held = std::shared_ptr<Exchange>;

  Impl(net::io_context& the_loop, EtcdCurlOptions the_options)
      : loop(the_loop), options(std::move(the_options)) {}

  simulation::EtcdRequests& requests() const { return loop.variable<simulation::EtcdRequests>(); }

  /// Wraps a handler, which is not called when the exchange is over.
  template <class Function>
  auto while_current(const Held& exchange, Function function) {
    return [self = shared_from_this(), exchange, function](const boost::system::error_code& error,
                                                           std::size_t bytes = 0) {
      if (self->current == exchange) function(error, bytes);
    };
  }

  void begin() {
    const auto exchange = current = std::make_shared<Exchange>(loop);
    exchange->request =
        jobs.front().request.path + "\n" + jobs.front().request.body + simulation::kEndOfMessage;
    exchange->timeout.expires_after(options.timeout);
    exchange->timeout.async_wait(while_current(exchange, [this](const auto& error, std::size_t) {
      if (!error) end({.body = "Timeout was reached"});
    }));
    const std::size_t host = options.url.find("//") + 2;
    const HostLookup lookup = net::look_up(options.url.substr(host, options.url.rfind(':') - host));
    exchange->socket.async_connect(
        {net::ip::make_address(lookup.addresses.front()), simulation::Etcd::kPort},
        while_current(exchange, [this, exchange](const auto& error, std::size_t) {
          if (error) return end({.body = "Could not connect to server"});
          net::async_write(exchange->socket, net::buffer(exchange->request),
                           while_current(exchange, [exchange](const auto& failure, std::size_t) {
                             boost::system::error_code ignored;
                             if (!failure)
                               exchange->socket.shutdown(net::tcp::socket::shutdown_send, ignored);
                           }));
          read(exchange);
        }));
  }

  void read(const Held& exchange) {
    exchange->socket.async_read_some(
        net::buffer(exchange->piece),
        while_current(exchange, [this, exchange](const auto& error, std::size_t bytes) {
          exchange->reply.append(exchange->piece.data(), bytes);
          if (!error) return read(exchange);
          const std::size_t line = exchange->reply.find('\n');
          const bool is_whole = error == net::error::eof && line + 1 < exchange->reply.size() &&
                                exchange->reply.ends_with(simulation::kEndOfMessage);
          if (!is_whole) return end({.body = "Empty reply from server"});
          end({std::stoi(exchange->reply.substr(0, line)),
               exchange->reply.substr(line + 1, exchange->reply.size() - line - 2)});
        }));
  }

  static void close(Exchange& exchange) {
    boost::system::error_code ignored;
    exchange.socket.close(ignored);
    exchange.timeout.cancel();
  }

  // The handler may destroy the gateway.
  void end(const EtcdReply& reply) {
    close(*std::exchange(current, {}));
    const Handler handler = std::move(jobs.front().handler);
    jobs.pop_front();
    --requests().pending;
    if (!jobs.empty()) begin();
    handler(reply);
  }

  net::io_context& loop;
  EtcdCurlOptions options;
  std::deque<Job> jobs = {};
  Held current = {};
};

EtcdCurl::EtcdCurl(net::io_context& loop, const EtcdCurlOptions& options)
    : impl_(std::make_shared<Impl>(loop, options)) {}

EtcdCurl::~EtcdCurl() {
  if (const auto exchange = std::exchange(impl_->current, {})) impl_->close(*exchange);
  impl_->requests().pending -= impl_->jobs.size();
  impl_->jobs.clear();
}

void EtcdCurl::post(const EtcdRequest& request, Handler handler) {
  impl_->jobs.push_back({request, std::move(handler)});
  ++impl_->requests().pending;
  if (impl_->jobs.size() == 1) impl_->begin();
}

}  // namespace acc::launcher
