// SPDX-License-Identifier: Apache-2.0
#include "acc/store/dialer.hpp"

#include <algorithm>
#include <boost/asio/buffer.hpp>
#include <boost/asio/connect.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/read.hpp>
#include <boost/asio/write.hpp>
#include <boost/system/error_code.hpp>
#include <utility>

#include "acc/store/protocol.hpp"

namespace acc::launcher {
namespace {

namespace asio = boost::asio;
using asio::ip::tcp;
using boost::system::error_code;
using std::chrono::steady_clock;

constexpr std::chrono::milliseconds kFirstPause{50};
constexpr std::chrono::milliseconds kMaxPause{2000};
constexpr std::chrono::seconds kAttemptTimeout{10};

// A `check` of no keys, which every version of torch answers at once. A server of torch 2.4 closes the
// connection on `ping`.
std::string first_request() {
  return encode({.op = Op::validate, .number = kStoreMagic}) + encode({.op = Op::check});
}

}  // namespace

std::string to_string(const StoreAddress& address) {
  const bool v6 = address.host.find(':') != std::string::npos;
  return (v6 ? "[" + address.host + "]" : address.host) + ":" + std::to_string(address.port);
}

Dialer::Dialer(asio::io_context& loop) : resolver_(loop), socket_(loop), timeout_(loop), pause_(loop) {}

void Dialer::start(StoreAddress address, steady_clock::time_point deadline, Failed failed, Done done) {
  address_ = std::move(address);
  deadline_ = deadline;
  next_pause_ = kFirstPause;
  failed_ = std::move(failed);
  done_ = std::move(done);
  start_attempt();
}

void Dialer::cancel() {
  done_ = {};
  failed_ = {};
  resolver_.cancel();
  timeout_.cancel();
  pause_.cancel();
  error_code ignored;
  socket_.close(ignored);
}

void Dialer::start_attempt() {
  ++attempt_;
  request_.clear();
  timeout_.expires_at(std::min(deadline_, steady_clock::now() + kAttemptTimeout));
  timeout_.async_wait([self = shared_from_this(), attempt = attempt_](const error_code& error) {
    if (error || self->stale(attempt)) return;
    self->failed(self->request_.empty() ? "no answer" : "what listens there does not answer as a store");
  });
  resolve();
}

void Dialer::resolve() {
  error_code not_an_address;
  const auto address = asio::ip::make_address(address_.host, not_an_address);
  if (!not_an_address) {
    const tcp::endpoint endpoint(address, address_.port);
    return connect(tcp::resolver::results_type::create(endpoint, address_.host, {}));
  }
  resolver_.async_resolve(
      address_.host, std::to_string(address_.port),
      [self = shared_from_this(), attempt = attempt_](const error_code& error, const auto& endpoints) {
        if (self->stale(attempt)) return;
        if (error) return self->failed("cannot resolve the name: " + error.message());
        self->connect(endpoints);
      });
}

void Dialer::connect(const tcp::resolver::results_type& endpoints) {
  asio::async_connect(
      socket_, endpoints,
      [self = shared_from_this(), attempt = attempt_](const error_code& error, const tcp::endpoint&) {
        if (self->stale(attempt)) return;
        if (error) return self->failed(error.message());
        self->check_store();
      });
}

void Dialer::check_store() {
  error_code ignored;  // without the options it is only slower
  socket_.set_option(tcp::no_delay(true), ignored);
  socket_.set_option(asio::socket_base::keep_alive(true), ignored);
  request_ = first_request();
  asio::async_write(socket_, asio::buffer(request_), [](const error_code&, std::size_t) {});
  asio::async_read(socket_, asio::buffer(&reply_, 1),
                   [self = shared_from_this(), attempt = attempt_](const error_code& error, std::size_t) {
                     if (self->stale(attempt)) return;
                     if (error || self->reply_ != static_cast<char>(kReady)) {
                       return self->failed("what listens there does not answer as a store");
                     }
                     self->finish(std::move(self->socket_), {});
                   });
}

void Dialer::failed(std::string why) {
  ++attempt_;
  timeout_.cancel();
  resolver_.cancel();
  error_code ignored;
  socket_.close(ignored);
  if (failed_) failed_(why);
  if (!done_) return;
  const auto now = steady_clock::now();
  if (now >= deadline_) return finish(std::nullopt, why);
  pause_.expires_at(std::min(deadline_, now + next_pause_));
  next_pause_ = std::min(next_pause_ * 3 / 2, kMaxPause);
  pause_.async_wait([self = shared_from_this(), attempt = attempt_, why = std::move(why)](const error_code&) {
    if (self->stale(attempt)) return;
    if (steady_clock::now() >= self->deadline_) return self->finish(std::nullopt, why);
    self->start_attempt();
  });
}

void Dialer::finish(std::optional<tcp::socket> socket, const std::string& why) {
  const Done done = std::exchange(done_, {});
  failed_ = {};
  timeout_.cancel();
  done(std::move(socket), why);
}

}  // namespace acc::launcher
