// SPDX-License-Identifier: Apache-2.0
#include "acc/store/listener.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <optional>
#include <utility>

#include "acc/base/error.hpp"
#include "acc/base/log.hpp"
#include "acc/store/network.hpp"

namespace acc::launcher {
namespace {

using boost::system::error_code;
using net::tcp;

constexpr auto kPause = std::chrono::milliseconds(50);
// After so many, other handlers run.
constexpr int kAcceptedAtOnce = 64;
// A free port of one address may be taken on another.
constexpr int kPortTries = 32;

std::string name_of(const tcp::endpoint& endpoint) {
  const std::string host = endpoint.address().to_string();
  return (endpoint.address().is_v6() ? "[" + host + "]" : host) + ":" + std::to_string(endpoint.port());
}

std::vector<net::ip::address> parse_addresses(const std::vector<std::string>& texts) {
  std::vector<net::ip::address> addresses;
  for (const std::string& text : texts) {
    error_code error;
    const auto address = net::ip::make_address(text, error);
    if (error) {
      throw Error({.what = "is not a numeric address to listen on", .where = "'" + text + "'"});
    }
    if (std::ranges::find(addresses, address) == addresses.end()) addresses.push_back(address);
  }
  if (addresses.empty()) throw Error({.what = "the store has no address to listen on"});
  return addresses;
}

tcp::acceptor listen(net::io_context& loop, const tcp::endpoint& endpoint, bool v6_only, error_code& error) {
  tcp::acceptor acceptor(loop);
  // Created here with SOCK_CLOEXEC: Asio sets the flag later, and a child started meanwhile would inherit the
  // socket.
  const int type = SOCK_STREAM | SOCK_CLOEXEC;
  const int fd = ::socket(endpoint.protocol().family(), type, endpoint.protocol().protocol());
  if (fd < 0) {
    error.assign(errno, boost::system::system_category());
    return acceptor;
  }
  acceptor.assign(endpoint.protocol(), fd, error);
  if (error) {
    ::close(fd);
    return acceptor;
  }
  if (endpoint.address().is_v6()) acceptor.set_option(net::ip::v6_only(v6_only), error);
  if (!error) acceptor.set_option(tcp::acceptor::reuse_address(true), error);
  if (!error) acceptor.bind(endpoint, error);
  if (!error) acceptor.listen(tcp::acceptor::max_listen_connections, error);
  if (!error) acceptor.non_blocking(true, error);
  return acceptor;
}

// Listens on all addresses; absent if the free port of the first is taken on another.
std::optional<std::vector<std::shared_ptr<Listener>>> try_port(net::io_context& loop,
                                                               const std::vector<net::ip::address>& addresses,
                                                               std::uint16_t port) {
  const bool has_v4 = std::ranges::any_of(addresses, [](const auto& address) { return address.is_v4(); });
  std::vector<std::shared_ptr<Listener>> listeners;
  for (const net::ip::address& address : addresses) {
    const tcp::endpoint endpoint(address, listeners.empty() ? port : listeners.front()->port());
    error_code error;
    tcp::acceptor acceptor = listen(loop, endpoint, has_v4, error);
    if (error == net::error::address_in_use && port == 0 && !listeners.empty()) return std::nullopt;
    if (error) {
      throw Error(
          {.kind = ErrorKind::system,
           .what = "the store cannot listen: " + error.message(),
           .where = name_of(endpoint),
           .hint = error == net::error::address_in_use ? "choose another port, or 0 for a free one" : ""});
    }
    listeners.push_back(std::make_shared<Listener>(std::move(acceptor)));
  }
  return listeners;
}

}  // namespace

std::vector<std::shared_ptr<Listener>> listen_on(net::io_context& loop,
                                                 const std::vector<std::string>& addresses,
                                                 std::uint16_t port) {
  const auto parsed = parse_addresses(addresses);
  for (int i = 0; i < kPortTries; ++i) {
    if (auto listeners = try_port(loop, parsed, port)) return std::move(*listeners);
  }
  throw Error({.kind = ErrorKind::system,
               .what = "no port is free on all addresses of the store",
               .where = name_of({parsed.back(), 0}),
               .hint = "choose a port"});
}

Listener::Listener(tcp::acceptor acceptor)
    : acceptor_(std::move(acceptor)), pause_(acceptor_.get_executor()) {}

std::uint16_t Listener::port() const {
  return acceptor_.local_endpoint().port();
}

void Listener::start(Accepted accepted) {
  accepted_ = std::move(accepted);
  wait();
}

void Listener::close() {
  error_code ignored;
  acceptor_.close(ignored);
  pause_.cancel();
  accepted_ = nullptr;
}

void Listener::wait() {
  acceptor_.async_wait(tcp::acceptor::wait_read, [self = shared_from_this()](const error_code& error) {
    if (!self->acceptor_.is_open()) return;
    if (error) return self->wait_a_little();
    self->accept_waiting();
  });
}

void Listener::wait_a_little() {
  pause_.expires_after(kPause);
  pause_.async_wait([self = shared_from_this()](const error_code&) {
    if (self->acceptor_.is_open()) self->wait();
  });
}

void Listener::accept_waiting() {
  for (int i = 0; i < kAcceptedAtOnce; ++i) {
    const int fd = ::accept4(acceptor_.native_handle(), nullptr, nullptr, SOCK_CLOEXEC);
    if (fd < 0) {
      if (errno == EAGAIN || errno == EWOULDBLOCK) break;
      if (errno == EINTR || errno == ECONNABORTED) continue;
      // No descriptors or no memory: the connection stays in the backlog, and waiting for it would spin.
      report_refusal(errno);
      return wait_a_little();
    }
    tcp::socket socket(acceptor_.get_executor());
    error_code error;
    socket.assign(acceptor_.local_endpoint().protocol(), fd, error);
    if (error) {
      ::close(fd);
      return wait_a_little();
    }
    accepted_(std::move(socket));
  }
  wait();
}

// Once: it is tried again until others close theirs.
void Listener::report_refusal(int error) {
  if (std::exchange(refusal_reported_, true)) return;
  rlimit files = {};
  ::getrlimit(RLIMIT_NOFILE, &files);
  const bool too_few = error == EMFILE;
  error_code ignored;
  log::write(
      log::Level::warn,
      fmt::format(
          "connections to {} wait: {}{}", name_of(acceptor_.local_endpoint(ignored)), std::strerror(error),
          too_few ? fmt::format(" ({} for this process; raise the hard limit: ulimit -Hn)", files.rlim_cur)
                  : std::string()));
}

void Listener::discard_waiting() {
  while (true) {
    const int fd = ::accept4(acceptor_.native_handle(), nullptr, nullptr, SOCK_CLOEXEC);
    if (fd >= 0) {
      ::close(fd);
    } else if (errno != EINTR && errno != ECONNABORTED) {
      return;
    }
  }
}

}  // namespace acc::launcher
