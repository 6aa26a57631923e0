// SPDX-License-Identifier: Apache-2.0
// What the rendezvous and its store ask the system for, in the simulated world: the bodies of
// store/listener.cpp, store/resolver.cpp and store/peer_user.cpp.
#include <fmt/format.h>

#include <algorithm>
#include <chrono>

#include "acc/base/error.hpp"
#include "acc/store/listener.hpp"
#include "acc/store/network.hpp"
#include "acc/store/peer_user.hpp"
#include "acc/store/resolver.hpp"

namespace acc::net {

using simulation::Network;
using simulation::World;

OwnNames own_names() {
  const int machine = World::current().running->machine;
  return {.host_name = fmt::format("n{}", machine),
          .addresses = {"127.0.0.1", Network::address_of(machine).to_string()}};
}

std::string address_towards(const std::string& address) {
  if (is_loopback(address)) return "127.0.0.1";
  return Network::address_of(World::current().running->machine).to_string();
}

// Machine 3 is called n3.
HostLookup look_up(const std::string& host) {
  if (!host.starts_with('n')) return {.error = "unknown name"};
  return {.addresses = {Network::address_of(std::stoi(host.substr(1))).to_string()}};
}

}  // namespace acc::net

namespace acc::launcher {

using namespace std::chrono_literals;

struct Resolver::Waiter {
  Done done = {};
};

Resolver::Resolver(net::io_context& loop, LookUp look_up) : loop_(loop), look_up_(std::move(look_up)) {}

Resolver::~Resolver() {
  cancel();
}

void Resolver::resolve(const std::string& host, Done done) {
  cancel();
  waiter_ = std::make_shared<Waiter>(Waiter{std::move(done)});
  boost::system::error_code is_name;
  net::ip::make_address(host, is_name);
  const HostLookup lookup = is_name ? look_up_(host) : HostLookup{.addresses = {host}};
  net::post(loop_, [waiter = waiter_, lookup] {
    if (const auto handler = std::exchange(waiter->done, {})) handler(lookup);
  });
}

void Resolver::cancel() {
  if (waiter_) std::exchange(waiter_, nullptr)->done = {};
}

Listener::Listener(net::tcp::acceptor acceptor)
    : acceptor_(std::move(acceptor)), pause_(acceptor_.get_executor()) {}

std::uint16_t Listener::port() const {
  return acceptor_.local_endpoint().port();
}

void Listener::start(Accepted accepted) {
  accepted_ = std::move(accepted);
  wait();
}

void Listener::wait() {
  simulation::Port& port = acceptor_.port();
  port.on_waiting = [weak = weak_from_this(), &port] {
    port.loop.post([weak] {
      if (const auto self = weak.lock(); self && self->acceptor_.is_open()) self->accept_waiting();
    });
  };
  if (!port.backlog.empty()) port.on_waiting();
}

void Listener::accept_waiting() {
  const auto self = shared_from_this();
  while (acceptor_.is_open() && !acceptor_.port().backlog.empty()) {
    simulation::Port& port = acceptor_.port();
    const auto side = port.backlog.front();
    port.backlog.pop_front();
    side->accept(port.loop);
    accepted_(net::tcp::socket(port.loop, side));
  }
}

void Listener::discard_waiting() {
  for (const auto& side : std::exchange(acceptor_.port().backlog, {})) side->close();
}

void Listener::close() {
  acceptor_.close();
  pause_.cancel();
  accepted_ = nullptr;
}

std::vector<std::shared_ptr<Listener>> listen_on(net::io_context& loop,
                                                 const std::vector<std::string>& addresses,
                                                 std::uint16_t port) {
  std::vector<std::shared_ptr<Listener>> listeners;
  boost::system::error_code error;
  const net::tcp::endpoint endpoint(
      addresses.size() > 1 ? net::ip::make_address("::") : net::ip::make_address(addresses.front()), port);
  auto opened = simulation::Network::current().listen(loop, endpoint, error);
  if (error) {
    throw Error({.kind = ErrorKind::system,
                 .what = "the store cannot listen: " + error.message(),
                 .where = fmt::format("{}:{}", addresses.front(), port)});
  }
  listeners.push_back(std::make_shared<Listener>(net::tcp::acceptor(loop, std::move(opened))));
  return listeners;
}

std::optional<uid_t> user_of_peer(const net::tcp::socket&) {
  return std::nullopt;
}

bool may_be_own_user(const net::tcp::socket&) {
  return true;
}

}  // namespace acc::launcher
