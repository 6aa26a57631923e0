// SPDX-License-Identifier: Apache-2.0
// What clients send to the store: bytes of several connections, which arrive in pieces. Each request is
// carried out or closes its own connection; memory stays within the bytes received, nobody who does not wait
// is woken, and when all clients have left nobody waits.
#include <algorithm>
#include <array>

#include "acc/store/protocol.hpp"
#include "acc/store/service.hpp"
#include "fuzz/promise.hpp"

namespace {

using acc::launcher::ClientId;
using acc::launcher::encode;
using acc::launcher::Op;
using acc::launcher::Request;
using acc::launcher::Service;
using acc::launcher::Writer;

constexpr acc::launcher::RequestLimits kLimits = {
    .max_key_bytes = 64, .max_value_bytes = 512, .max_keys = 16, .max_request_bytes = 4096};
// Each key may have two values, and each text takes some bytes more than it has.
constexpr std::size_t kMaxMemory = kLimits.max_request_bytes + 3 * kLimits.max_keys * 100;
constexpr std::size_t kClients = 3;
constexpr std::array kWriters = {Writer::agent, Writer::member, Writer::stranger};

struct Client {
  ClientId id = 0;
  Writer writer = Writer::member;
  acc::launcher::RequestParser parser{kLimits};
  acc::launcher::Replies replies = {};
  bool is_closed = false;
};

// Requests are parsed to the same, whatever they hold.
void require_round_trip(const Request& request) {
  acc::launcher::RequestParser parser(kLimits);
  const std::string greeting = encode({.op = Op::validate, .number = acc::launcher::kStoreMagic});
  const std::string bytes = request.op == Op::validate ? encode(request) : greeting + encode(request);
  std::string_view rest = bytes;
  auto again = parser.next(rest);
  if (request.op != Op::validate) again = parser.next(rest);
  fuzz::require(again == request && rest.empty(), "a request is what was sent");
}

void receive(Service& service, Client& client, std::string_view bytes) {
  while (auto request = client.parser.next(bytes)) {
    require_round_trip(*request);
    acc::launcher::Work work = {.request = std::move(*request)};
    auto outcome = Service::Outcome::more;
    while (outcome == Service::Outcome::more)
      outcome = service.carry_out(client.id, client.writer, work, client.replies, 2);
    client.is_closed = outcome == Service::Outcome::refused;
    if (client.is_closed) break;
  }
  client.is_closed = client.is_closed || client.parser.broken();
  fuzz::require(client.parser.memory() <= kMaxMemory, "the memory of a request is limited");
  if (client.is_closed) service.leave(client.id);
  std::size_t sendable = 0;
  for (const std::string_view piece : client.replies.front(SIZE_MAX)) sendable += piece.size();
  fuzz::require(sendable == client.replies.size(), "replies are as long as they say");
  client.replies.sent(client.replies.size());
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  std::string_view bytes = fuzz::text_of(data, size);
  fuzz::Choices choices(bytes);
  Service service(1000);
  std::array<Client, kClients> clients;
  for (std::size_t i = 0; i < kClients; ++i) {
    clients.at(i).id = i;
    clients.at(i).writer = kWriters.at(i);
    const std::string greeting = encode({.op = Op::validate, .number = acc::launcher::kStoreMagic});
    // The last one has not said who it is.
    if (i + 1 < kClients) receive(service, clients.at(i), greeting);
  }
  while (!bytes.empty()) {
    Client& client = clients.at(choices.below(kClients));
    const std::string_view piece = bytes.substr(0, choices.below(256));
    bytes.remove_prefix(std::min(piece.size(), bytes.size()));
    if (!client.is_closed) receive(service, client, piece);
    // One that serves its own wait may end its connection in the same piece.
    for (const ClientId woken : service.take_woken())
      fuzz::require(woken < kClients && (woken == client.id || !clients.at(woken).is_closed),
                    "only clients that wait are woken");
    while (service.sweep(1)) {
    }
  }
  for (const Client& client : clients) service.leave(client.id);
  fuzz::require(service.waiting() == 0, "nobody waits when all have left");
  return 0;
}
