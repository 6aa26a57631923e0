// SPDX-License-Identifier: Apache-2.0
#include "acc/store/connecting.hpp"

#include <algorithm>
#include <utility>

#include "acc/store/network.hpp"

namespace acc::launcher {
namespace {

using boost::system::error_code;
using net::tcp;

// RFC 8305 calls it the connection attempt delay.
constexpr std::chrono::milliseconds kNextAddressDelay{250};

}  // namespace

Connecting::Connecting(net::io_context& loop, Resolver::LookUp look_up)
    : loop_(loop), resolver_(loop, std::move(look_up)), timer_(loop), next_(loop) {}

void Connecting::start(const std::string& host, std::uint16_t port, std::chrono::milliseconds timeout,
                       Done done, std::size_t first) {
  done_ = std::move(done);
  timer_.expires_after(timeout);
  timer_.async_wait([self = shared_from_this()](const error_code& error) {
    if (!error)
      self->finish(std::nullopt, self->endpoints_.empty() ? "the resolver does not answer" : "no answer");
  });
  resolver_.resolve(host, [self = shared_from_this(), port, first](const HostLookup& found) {
    self->on_resolved(found, port, first);
  });
}

void Connecting::on_resolved(const HostLookup& host, std::uint16_t port, std::size_t first) {
  for (const std::string& address : host.addresses) {
    error_code not_an_address;
    const tcp::endpoint endpoint(net::ip::make_address(address, not_an_address), port);
    if (!not_an_address) endpoints_.push_back(endpoint);
  }
  if (endpoints_.empty()) return finish(std::nullopt, "cannot resolve the name: " + host.error);
  std::ranges::rotate(endpoints_,
                      endpoints_.begin() + static_cast<std::ptrdiff_t>(first % endpoints_.size()));
  sockets_.reserve(endpoints_.size());  // operations refer to them
  refused_ = true;
  try_next();
}

void Connecting::try_next() {
  const std::size_t attempt = sockets_.size();
  if (attempt == endpoints_.size()) return;
  sockets_.emplace_back(loop_);
  sockets_.back().async_connect(endpoints_[attempt],
                                [self = shared_from_this(), attempt](const error_code& error) {
                                  if (self->done_) self->on_answer(attempt, error);
                                });
  next_.expires_after(kNextAddressDelay);
  next_.async_wait([self = shared_from_this()](const error_code& error) {
    if (!error && self->done_) self->try_next();
  });
}

void Connecting::on_answer(std::size_t attempt, const error_code& error) {
  refused_ = refused_ && error == net::error::connection_refused;
  if (!error) return finish(std::move(sockets_[attempt]), "");
  if (++failed_ == endpoints_.size()) return finish(std::nullopt, error.message());
  try_next();
}

void Connecting::finish(std::optional<tcp::socket> socket, const std::string& reason) {
  if (!done_) return;
  const Done done = std::exchange(done_, nullptr);
  refused_ = refused_ && !socket && failed_ == endpoints_.size();
  close();
  done(std::move(socket), reason);
}

void Connecting::cancel() {
  done_ = nullptr;
  close();
}

void Connecting::close() {
  timer_.cancel();
  next_.cancel();
  resolver_.cancel();
  error_code ignored;
  for (tcp::socket& socket : sockets_) socket.close(ignored);
}

}  // namespace acc::launcher
