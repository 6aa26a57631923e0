// SPDX-License-Identifier: Apache-2.0
#include "acc/store/dialer.hpp"

#include <algorithm>
#include <boost/system/error_code.hpp>
#include <utility>

#include "acc/store/network.hpp"
#include "acc/store/protocol.hpp"

namespace acc::launcher {
namespace {

using boost::system::error_code;
using net::tcp;

constexpr std::chrono::milliseconds kFirstPause{50};
constexpr std::chrono::milliseconds kMaxPause{2000};
constexpr std::chrono::seconds kAttemptTimeout{10};
constexpr const char* kNoStore = "what listens there does not answer as a store";

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

Dialer::Dialer(net::io_context& loop) : loop_(loop), socket_(loop), timeout_(loop), pause_(loop) {}

void Dialer::start(StoreAddress address, RunningClock::time_point deadline, Failed failed, Done done) {
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
  if (connecting_) connecting_->cancel();
  timeout_.cancel();
  pause_.cancel();
  error_code ignored;
  socket_.close(ignored);
}

void Dialer::start_attempt() {
  const std::uint64_t attempt = ++attempt_;
  const auto now = RunningClock::now();
  timeout_.expires_at(std::min(deadline_, now + kAttemptTimeout));
  connecting_ = std::make_shared<Connecting>(loop_);
  connecting_->start(
      address_.host, address_.port, std::chrono::ceil<std::chrono::milliseconds>(timeout_.expiry() - now),
      [self = shared_from_this(), attempt](std::optional<tcp::socket> socket, const std::string& reason) {
        if (self->stale(attempt)) return;
        socket ? self->check_store(std::move(*socket)) : self->failed(reason);
      },
      attempts_++);
}

void Dialer::check_store(tcp::socket socket) {
  socket_ = std::move(socket);
  timeout_.async_wait([self = shared_from_this(), attempt = attempt_](const error_code& error) {
    if (!error && !self->stale(attempt)) self->failed(kNoStore);
  });
  error_code ignored;  // without the options it is only slower
  socket_.set_option(tcp::no_delay(true), ignored);
  socket_.set_option(net::socket_base::keep_alive(true), ignored);
  request_ = first_request();
  net::async_write(socket_, net::buffer(request_), [](const error_code&, std::size_t) {});
  net::async_read(socket_, net::buffer(&reply_, 1),
                  [self = shared_from_this(), attempt = attempt_](const error_code& error, std::size_t) {
                    if (self->stale(attempt)) return;
                    if (error || self->reply_ != static_cast<char>(kReady)) return self->failed(kNoStore);
                    self->finish(std::move(self->socket_), {});
                  });
}

void Dialer::failed(std::string reason) {
  ++attempt_;
  timeout_.cancel();
  if (connecting_) connecting_->cancel();
  error_code ignored;
  socket_.close(ignored);
  if (failed_) failed_(reason);
  if (!done_) return;
  const auto now = RunningClock::now();
  if (now >= deadline_) return finish(std::nullopt, reason);
  pause_.expires_at(std::min(deadline_, now + next_pause_));
  next_pause_ = std::min(next_pause_ * 3 / 2, kMaxPause);
  pause_.async_wait(
      [self = shared_from_this(), attempt = attempt_, reason = std::move(reason)](const error_code&) {
        if (self->stale(attempt)) return;
        if (RunningClock::now() >= self->deadline_) return self->finish(std::nullopt, reason);
        self->start_attempt();
      });
}

void Dialer::finish(std::optional<tcp::socket> socket, const std::string& reason) {
  const Done done = std::exchange(done_, {});
  failed_ = {};
  timeout_.cancel();
  done(std::move(socket), reason);
}

}  // namespace acc::launcher
