// SPDX-License-Identifier: Apache-2.0
// Random requests: valid ones, truncated, mixed and with flipped bytes, from many clients at once. The same
// on every machine; scripts/fuzz finds others.
#include <cstdint>
#include <random>
#include <string>
#include <string_view>
#include <vector>

#include "acc/store/protocol.hpp"
#include "acc/store/service.hpp"
#include "support/catch.hpp"

namespace service_random_requests_test {

namespace {

using acc::launcher::encode;
using acc::launcher::Op;
using acc::launcher::Request;

constexpr acc::launcher::RequestLimits kLimits = {
    .max_key_bytes = 64, .max_value_bytes = 512, .max_keys = 16, .max_request_bytes = 4096};
constexpr std::size_t kClients = 8;
constexpr int kMessages = 100'000;

/// The same sequence on every machine: unlike the engine, the standard's distributions differ between
/// libraries.
class Dice {
 public:
  std::uint64_t below(std::uint64_t limit) { return engine_() % limit; }
  bool one_in(std::uint64_t times) { return below(times) == 0; }
  std::string text(std::size_t max_bytes) {
    std::string bytes(below(max_bytes + 1), '\0');
    for (char& byte : bytes) byte = static_cast<char>(below(256));
    return bytes;
  }

 private:
  std::mt19937_64 engine_{20250101};
};

Request random_request(Dice& dice) {
  Request request = {.op = static_cast<Op>(dice.below(19))};
  const bool counted = request.op == Op::check || request.op == Op::wait || request.op == Op::multi_get ||
                       request.op == Op::multi_set;
  const bool without_key = request.op == Op::validate || request.op == Op::ping ||
                           request.op == Op::cancel_wait || request.op == Op::get_num_keys ||
                           request.op == Op::list_keys;
  const std::size_t keys = counted ? dice.below(5) : without_key ? 0 : 1;
  for (std::size_t i = 0; i < keys; ++i) {
    request.keys.push_back(std::string(1, static_cast<char>('a' + dice.below(6))));
    for (int value = 0; value < 2; ++value) {
      request.values.push_back(dice.one_in(2) ? std::to_string(dice.below(9)) : dice.text(40));
    }
  }
  request.number =
      request.op == Op::validate ? acc::launcher::kStoreMagic : static_cast<std::int64_t>(dice.below(5)) - 1;
  if (dice.one_in(50)) request.number = static_cast<std::int64_t>(dice.below(~std::uint64_t{0}));
  return request;
}

std::string random_message(Dice& dice) {
  std::string bytes = encode(random_request(dice));
  if (dice.one_in(20)) bytes[dice.below(bytes.size())] = static_cast<char>(dice.below(256));
  if (dice.one_in(40)) bytes.resize(dice.below(bytes.size()) + 1);
  if (dice.one_in(40)) bytes += dice.text(20);
  return bytes;
}

struct Client {
  acc::launcher::ClientId id = 0;
  acc::launcher::RequestParser parser{kLimits};
  acc::launcher::Replies replies = {};
};

}  // namespace

TEST_CASE("store: random and invalid messages neither crash it nor make it grow", "[store]") {
  Dice dice;
  acc::launcher::Service service;
  acc::launcher::ClientId next_id = 0;
  std::uint64_t handled = 0;
  std::uint64_t dropped = 0;
  std::vector<Client> clients(kClients);

  const auto renew = [&](Client& client) {
    service.leave(client.id);
    client = {.id = next_id++};
    const std::string hello = encode({.op = Op::validate, .number = acc::launcher::kStoreMagic});
    std::string_view bytes = hello;
    REQUIRE(client.parser.next(bytes));
  };
  const auto receive = [&](Client& client, std::string_view bytes) {
    bool answered = true;
    while (auto request = client.parser.next(bytes)) {
      acc::launcher::Work work = {.request = std::move(*request)};
      auto outcome = acc::launcher::Service::Outcome::more;
      while (outcome == acc::launcher::Service::Outcome::more)
        outcome = service.carry_out(client.id, acc::launcher::Writer::member, work, client.replies, 2);
      answered = outcome == acc::launcher::Service::Outcome::done;
      ++handled;
      if (!answered) break;
    }
    client.replies.clear();
    if (answered && !client.parser.broken()) return;
    ++dropped;
    renew(client);
  };

  for (Client& client : clients) renew(client);
  bool all_known = true;
  for (int i = 0; i < kMessages; ++i) {
    Client& client = clients[dice.below(kClients)];
    const std::string message = random_message(dice);
    const std::size_t cut = dice.below(message.size() + 1);
    receive(client, std::string_view(message).substr(0, cut));
    receive(client, std::string_view(message).substr(cut));
    for (const acc::launcher::ClientId woken : service.take_woken()) all_known = all_known && woken < next_id;
  }

  CHECK(all_known);
  CHECK(handled > static_cast<std::uint64_t>(kMessages / 2));
  CHECK(dropped > static_cast<std::uint64_t>(kMessages / 100));
  CHECK(service.waiting() <= kClients);
  for (const Client& client : clients) service.leave(client.id);
  CHECK(service.waiting() == 0);
  // Flipped bytes create a few real keys; nothing else may remain.
  CHECK(service.keys() < dropped + 1000);
}

}  // namespace service_random_requests_test
