// SPDX-License-Identifier: Apache-2.0
#include "acc/store/server.hpp"

#include <span>
#include <unordered_map>
#include <utility>

#include "acc/store/address_filter.hpp"
#include "acc/store/connection.hpp"
#include "acc/store/greetings.hpp"
#include "acc/store/listener.hpp"
#include "acc/store/service.hpp"

namespace acc {
namespace {

constexpr std::size_t kScratchBytes = std::size_t{1} << 16U;

Connection::Limits limits_of(const StoreServerOptions& options) {
  return {.request = {.most_key_bytes = options.most_key_bytes,
                      .most_value_bytes = options.most_value_bytes,
                      .most_keys = options.most_keys,
                      .most_request_bytes = options.most_request_bytes},
          .most_unsent_bytes = options.most_unsent_bytes};
}

}  // namespace

struct StoreServer::Impl final : Connection::Owner {
  Impl(boost::asio::io_context& loop, const StoreServerOptions& options)
      : limits(limits_of(options)),
        greetings(std::make_shared<Greetings>(loop, options.greeting_patience)),
        listeners(listen_on(loop, options.addresses, options.port)) {
    for (const auto& listener : listeners) {
      listener->start([this](boost::asio::ip::tcp::socket socket) { accepted(std::move(socket)); });
    }
  }

  // Handlers that are still queued keep connections and listeners, which know that they are closed.
  ~Impl() {
    for (const auto& listener : listeners) listener->close();
    greetings->close();
    close_connections();
  }

  void accepted(boost::asio::ip::tcp::socket socket) {
    if (!admits(socket)) return;
    const ClientId id = next_id++;
    const auto connection = std::make_shared<Connection>(std::move(socket), id, *this, limits);
    connections.emplace(id, connection);
    connection->start();
    greetings->expect(connection);
  }

  bool admits(const boost::asio::ip::tcp::socket& socket) const {
    boost::system::error_code error;
    const auto peer = socket.remote_endpoint(error);
    if (error) return false;  // it is gone already
    const auto own = socket.local_endpoint(error);
    return !error && filter.admits(peer.address(), own.address());
  }

  bool handle(ClientId client, Request request, Replies& replies) override {
    const bool answered = service.handle(client, std::move(request), replies);
    deliver_wake_ups();
    return answered;
  }

  void closed(ClientId client) override {
    connections.erase(client);
    service.leave(client);
    deliver_wake_ups();
  }

  std::span<char> scratch() override { return scratch_room; }

  void deliver_wake_ups() {
    for (const ClientId client : service.take_woken()) connections.at(client)->wake();
  }

  void close_connections() {
    for (const auto& [id, connection] : connections) connection->close();
    connections.clear();
  }

  Connection::Limits limits;
  AddressFilter filter;
  Service service;
  std::unordered_map<ClientId, std::shared_ptr<Connection>> connections;
  std::vector<char> scratch_room = std::vector<char>(kScratchBytes);
  std::shared_ptr<Greetings> greetings;
  std::vector<std::shared_ptr<Listener>> listeners;
  ClientId next_id = 0;
};

StoreServer::StoreServer(boost::asio::io_context& loop, StoreServerOptions options)
    : impl_(std::make_unique<Impl>(loop, options)) {}

StoreServer::~StoreServer() = default;

std::uint16_t StoreServer::port() const {
  return impl_->listeners.front()->port();
}

void StoreServer::allow(const std::string& address) {
  impl_->filter.allow(address);
}

void StoreServer::allow_all() {
  impl_->filter.allow_all();
}

void StoreServer::reset() {
  // A client of the attempt before may have connected and not been taken yet.
  for (const auto& listener : impl_->listeners) listener->discard_waiting();
  impl_->close_connections();
  impl_->service = {};
}

void StoreServer::set(std::string key, std::string value) {
  Replies none;
  impl_->handle(impl_->next_id++, {.op = Op::set, .keys = {std::move(key)}, .values = {std::move(value)}},
                none);
}

void StoreServer::forget_except(const std::function<bool(std::string_view)>& kept) {
  impl_->service.forget_except(kept);
}

std::size_t StoreServer::connections() const {
  return impl_->connections.size();
}

}  // namespace acc
