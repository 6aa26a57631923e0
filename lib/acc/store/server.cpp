// SPDX-License-Identifier: Apache-2.0
#include "acc/store/server.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <set>
#include <span>
#include <unordered_map>
#include <utility>

#include "acc/base/log.hpp"
#include "acc/base/own_addresses.hpp"
#include "acc/store/admission.hpp"
#include "acc/store/connection.hpp"
#include "acc/store/handshakes.hpp"
#include "acc/store/listener.hpp"
#include "acc/store/network.hpp"
#include "acc/store/peer_user.hpp"
#include "acc/store/service.hpp"

namespace acc::launcher {
namespace {

constexpr auto kSlice = std::chrono::milliseconds(2);
constexpr std::size_t kMaxRefusedNoted = 16;

}  // namespace

void RoundRobin::add(Slice slice) {
  tasks_.push_back(std::move(slice));
  if (std::exchange(running_, true)) return;
  net::post(loop_, [self = shared_from_this()] { self->run(); });
}

void RoundRobin::run() {
  running_ = false;
  if (tasks_.empty()) return;
  Slice slice = std::move(tasks_.front());
  tasks_.pop_front();
  const bool more = slice(Clock::now() + kSlice);
  if (more) return add(std::move(slice));
  if (tasks_.empty() || std::exchange(running_, true)) return;
  net::post(loop_, [self = shared_from_this()] { self->run(); });
}

namespace {

constexpr std::size_t kScratchBytes = std::size_t{1} << 16U;
// Keys that are handled in one step, without serving other clients in between.
constexpr std::size_t kKeysAtOnce = 1024;

Connection::Limits limits_of(const StoreServerOptions& options) {
  return {.request = {.max_key_bytes = options.max_key_bytes,
                      .max_value_bytes = options.max_value_bytes,
                      .max_keys = options.max_keys,
                      .max_request_bytes = options.max_request_bytes},
          .max_unsent_bytes = options.max_unsent_bytes};
}

// Other addresses cannot reach a store that listens on loopback only.
std::vector<std::string> own_addresses(const std::vector<std::string>& listening) {
  const bool loopback = std::ranges::all_of(listening, is_loopback);
  return loopback ? std::vector<std::string>() : net::own_names().addresses;
}

}  // namespace

struct StoreServer::Impl final : Connection::Owner {
  struct Client {
    std::shared_ptr<Connection> connection = {};
    bool is_stranger = false;
    std::uint64_t last_active = 0;
  };

  Impl(net::io_context& loop, StoreServerOptions the_options)
      : options(std::move(the_options)),
        admission(own_addresses(options.addresses)),
        scheduler(std::make_shared<RoundRobin>(loop)),
        members_handshakes(
            std::make_shared<Handshakes>(loop, Handshakes::Limits{.timeout = options.handshake_timeout})),
        strangers_handshakes(std::make_shared<Handshakes>(
            loop, Handshakes::Limits{.timeout = options.stranger_handshake_timeout,
                                     .max_pending = options.max_pending_strangers})),
        listeners(listen_on(loop, options.addresses, options.port)) {
    for (const auto& listener : listeners) {
      listener->start([this](net::tcp::socket socket) { on_accepted(std::move(socket)); });
    }
  }

  // Queued handlers may keep connections and listeners alive, which are closed here.
  ~Impl() {
    for (const auto& listener : listeners) listener->close();
    members_handshakes->close();
    strangers_handshakes->close();
    scheduler->close();
    close_connections();
  }

  void on_accepted(net::tcp::socket socket) {
    boost::system::error_code error;
    const auto peer = socket.remote_endpoint(error);
    if (error) return;  // closed already
    const auto own = socket.local_endpoint(error);
    if (error) return;
    const Standing standing = admission.standing(peer.address(), own.address());
    if (standing == Standing::refused) return note_refused(peer.address());
    // Also one that has closed already, perhaps of this job: its keys at its end do not appear.
    const bool is_stranger =
        standing == Standing::stranger || (standing == Standing::local && !may_be_own_user(socket));
    if (is_stranger) make_room_for_stranger();
    Connection::Limits limits = limits_of(options);
    limits.is_counted = is_stranger;
    const ClientId id = next_id++;
    const auto connection = std::make_shared<Connection>(std::move(socket), id, *this, limits);
    clients.emplace(id, Client{.connection = connection, .is_stranger = is_stranger, .last_active = ++clock});
    strangers += is_stranger ? 1 : 0;
    connection->start();
    (is_stranger ? strangers_handshakes : members_handshakes)->expect(connection);
  }

  // Once for an address, and for few of them: nobody fills the log from outside.
  void note_refused(const net::ip::address& peer) {
    const net::ip::address address = plain_address(peer);
    if (refused.size() >= kMaxRefusedNoted || !refused.insert(address).second) return;
    log::write(log::Level::warn,
               fmt::format("a connection from {} to the store at port {} is refused: no node of this round "
                           "has that address",
                           address.to_string(), listeners.front()->port()));
  }

  void make_room_for_stranger() {
    if (strangers < options.max_strangers) return;
    std::shared_ptr<Connection> oldest;
    std::uint64_t last_active = UINT64_MAX;
    for (const auto& [id, client] : clients) {
      if (!client.is_stranger || client.last_active >= last_active) continue;
      last_active = client.last_active;
      oldest = client.connection;
    }
    if (oldest) oldest->end();
  }

  Service::Outcome carry_out(ClientId id, Work& work, Replies& replies) override {
    Client& client = clients.at(id);
    client.last_active = ++clock;
    const Writer writer = client.is_stranger ? Writer::stranger : Writer::member;
    const Service::Outcome outcome = service.carry_out(id, writer, work, replies, kKeysAtOnce);
    deliver_wake_ups();
    return outcome;
  }

  void closed(ClientId id) override {
    const auto node = clients.extract(id);
    if (node && node.mapped().is_stranger) --strangers;
    memory.release(id);
    service.leave(id);
    deliver_wake_ups();
    sweep();
  }

  void schedule(std::shared_ptr<Connection> connection) override {
    scheduler->add([connection = std::move(connection)](RoundRobin::Clock::time_point until) {
      return connection->work_until(until);
    });
  }

  void holds(ClientId id, std::size_t bytes) override {
    for (const ClientId ended : memory.hold(id, bytes + service.wait_cost(id)))
      clients.at(ended).connection->end();
  }

  std::span<char> scratch() override { return {scratch_buffer.get(), kScratchBytes}; }

  void deliver_wake_ups() {
    for (const ClientId id : service.take_woken()) {
      if (const auto client = clients.find(id); client != clients.end()) client->second.connection->wake();
    }
  }

  // Cleans up after long waits in time slices, too.
  void sweep() {
    if (sweeping || !service.sweep(0)) return;
    sweeping = true;
    scheduler->add([this](RoundRobin::Clock::time_point until) {
      sweeping = false;
      while (service.sweep(kKeysAtOnce)) {
        if (RoundRobin::Clock::now() < until) continue;
        sweeping = true;
        return true;
      }
      return false;
    });
  }

  void close_connections() {
    for (const auto& [id, client] : clients) client.connection->close();
    clients.clear();
    strangers = 0;
  }

  void reset() {
    // A client of the previous attempt may be in the backlog.
    for (const auto& listener : listeners) listener->discard_waiting();
    close_connections();
    service = Service(options.max_stranger_bytes);
    memory = StrangerMemory(options.max_stranger_bytes);
  }

  StoreServerOptions options;
  Admission admission;
  Service service{options.max_stranger_bytes};
  StrangerMemory memory{options.max_stranger_bytes};
  std::unordered_map<ClientId, Client> clients;
  std::size_t strangers = 0;
  std::set<net::ip::address> refused;
  std::uint64_t clock = 0;
  bool sweeping = false;
  std::unique_ptr<char[]> scratch_buffer = std::make_unique_for_overwrite<char[]>(kScratchBytes);
  std::shared_ptr<RoundRobin> scheduler;
  std::shared_ptr<Handshakes> members_handshakes;
  std::shared_ptr<Handshakes> strangers_handshakes;
  std::vector<std::shared_ptr<Listener>> listeners;
  ClientId next_id = 0;
};

StoreServer::StoreServer(net::io_context& loop, StoreServerOptions options)
    : impl_(std::make_unique<Impl>(loop, std::move(options))) {}

StoreServer::~StoreServer() = default;

std::uint16_t StoreServer::port() const {
  return impl_->listeners.front()->port();
}

void StoreServer::serve(const StoreClients& clients) {
  impl_->admission.serve(clients);
}

void StoreServer::reset() {
  impl_->reset();
}

void StoreServer::set(std::string key, std::string value) {
  Replies none;
  Work work = {.request = {.op = Op::set, .keys = {std::move(key)}, .values = {std::move(value)}}};
  impl_->service.carry_out(impl_->next_id++, Writer::agent, work, none);
  impl_->deliver_wake_ups();
}

std::optional<std::string> StoreServer::get(const std::string& key) const {
  const KeyValue::Value value = impl_->service.get(key);
  return value ? std::optional(*value) : std::nullopt;
}

void StoreServer::forget_except(const std::function<bool(std::string_view)>& kept) {
  impl_->service.forget_except(kept);
}

std::size_t StoreServer::connections() const {
  return impl_->clients.size();
}

}  // namespace acc::launcher
