// SPDX-License-Identifier: Apache-2.0
#include "simulation/etcd.hpp"

#include <fmt/format.h>

#include <array>
#include <map>
#include <string>

#include "acc/rendezvous/etcd_coordinator_key.hpp"
#include "acc/store/listener.hpp"
#include "acc/store/network.hpp"
#include "simulation/network.hpp"
#include "support/fake_etcd.hpp"

namespace simulation {

using namespace std::chrono_literals;
using acc::launcher::EtcdReply;
using acc::launcher::EtcdRequest;
namespace net = acc::net;

struct Etcd::State {
  acc::test::FakeEtcd keys = {};
  int slow = 0;
  int failing = 0;
};

/// Its process: one connection for each request, which ends where the client's side of it does.
class Etcd::Server {
 public:
  Server(int machine, State& state) : loop_(machine), state_(state) {
    state_.keys.on_alive = [this](std::int64_t lease) { begin_time_of(lease); };
    loop_.post([this] {
      for (const std::int64_t lease : state_.keys.leases()) begin_time_of(lease);
      listener_ =
          acc::launcher::listen_on(loop_, {Network::address_of(loop_.machine).to_string()}, kPort).front();
      listener_->start(
          [this](net::tcp::socket socket) { read(std::make_shared<Exchange>(std::move(socket))); });
    });
  }

  ~Server() {
    state_.keys.on_alive = {};
    loop_.enter([this] {
      leases_.clear();
      listener_.reset();
    });
  }

  io_context& loop() { return loop_; }

 private:
  struct Exchange {
    explicit Exchange(net::tcp::socket accepted)
        : socket(std::move(accepted)), timer(socket.get_executor()) {}

    net::tcp::socket socket;
    net::steady_timer timer;
    std::array<char, 4096> piece = {};
    std::string request = {};
    std::string reply = {};
  };
  using Held = std::shared_ptr<Exchange>;

  // etcd looks for leases that are over twice a second.
  void begin_time_of(std::int64_t lease) {
    const auto time =
        acc::launcher::EtcdCoordinatorKey::kLeaseTtl + World::current().random().between(0ms, 500ms);
    auto& timer = leases_[lease];
    timer = std::make_unique<net::steady_timer>(loop_, time);
    timer->async_wait([this, lease](const error_code& error) {
      if (!error) state_.keys.expire(lease);
    });
  }

  void read(const Held& one) {
    one->socket.async_read_some(net::buffer(one->piece),
                                [this, one](const error_code& error, std::size_t bytes) {
                                  one->request.append(one->piece.data(), bytes);
                                  if (!error) return read(one);
                                  const bool is_whole = one->request.ends_with(kEndOfMessage);
                                  if (error == net::error::eof && is_whole)
                                    wait(one, [this, one] { apply(one); });
                                });
  }

  template <class Function>
  void wait(const Held& one, Function function) {
    Random& random = World::current().random();
    const bool is_late = state_.slow > 0 && random.chance(70);
    one->timer.expires_after(is_late ? random.between(100ms, 4s) : random.between(100us, 10ms));
    one->timer.async_wait([one, function](const error_code& error) {
      if (!error) function();
    });
  }

  void apply(const Held& one) {
    const std::size_t line = one->request.find('\n');
    const EtcdRequest request = {one->request.substr(0, line),
                                 one->request.substr(line + 1, one->request.size() - line - 2)};
    const bool fails = state_.failing > 0 && World::current().random().chance(70);
    EtcdReply reply = {503, R"({"message":"etcdserver: request timed out"})"};
    const bool is_applied = !fails || World::current().random().chance(50);
    if (is_applied) {
      const EtcdReply result = state_.keys.answer(request);
      if (!fails) reply = result;
    }
    World::current().trace(fmt::format("etcd: {}{}: {} {}", request.path, is_applied ? "" : ", not applied",
                                       reply.status, request.body));
    one->reply = fmt::format("{}\n{}{}", reply.status, reply.body, kEndOfMessage);
    wait(one, [one] {
      net::async_write(one->socket, net::buffer(one->reply), [one](const error_code&, std::size_t) {
        error_code ignored;
        one->socket.close(ignored);
      });
    });
  }

  io_context loop_;
  State& state_;
  std::shared_ptr<acc::launcher::Listener> listener_ = {};
  std::map<std::int64_t, std::unique_ptr<net::steady_timer>> leases_ = {};
};

Etcd::Etcd(int machine) : machine_(machine), state_(std::make_unique<State>()) {}

Etcd::~Etcd() {
  kill();
}

void Etcd::start() {
  if (!server_) server_ = std::make_unique<Server>(machine_, *state_);
}

void Etcd::kill() {
  if (server_) Network::current().end(server_->loop());
  server_.reset();
}

void Etcd::pause(bool pauses) {
  if (server_) server_->loop().pause(pauses);
}

void Etcd::slow_down(bool slows) {
  state_->slow += slows ? 1 : -1;
}

void Etcd::fail(bool fails) {
  state_->failing += fails ? 1 : -1;
}

void Etcd::expire_leases() {
  state_->keys.expire_leases();
}

bool Etcd::is_well() const {
  return server_ && !server_->loop().is_paused() && state_->slow == 0 && state_->failing == 0;
}

}  // namespace simulation
