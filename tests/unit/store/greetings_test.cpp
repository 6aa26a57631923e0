// SPDX-License-Identifier: Apache-2.0
#include "acc/store/greetings.hpp"

#include "support/catch.hpp"
#include "support/store_client.hpp"
#include "support/store_thread.hpp"

namespace {

using acc::launcher::Op;
using acc::test::StoreClient;
using acc::test::StoreThread;

// Enough for a client of this test on a loaded machine, little for who waits for it to pass.
constexpr auto kPatience = std::chrono::milliseconds(300);

}  // namespace

TEST_CASE("greetings: who says nothing, or half a greeting, loses its connection", "[store]") {
  StoreThread store({.greeting_timeout = kPatience});
  StoreClient silent(store.port());
  StoreClient half(store.port());
  half.send(std::string("\x00\xce", 2));
  CHECK(silent.closed_by_server());
  CHECK(half.closed_by_server());
  CHECK(store.connections() == 0);
}

TEST_CASE("greetings: who has greeted may be silent as long as it likes", "[store]") {
  StoreThread store({.greeting_timeout = kPatience});
  auto quiet = StoreClient::greeted(store.port());
  REQUIRE(quiet.alive());
  StoreClient later(store.port());
  CHECK(later.closed_by_server());  // quiet's time is over, too
  CHECK(quiet.alive());
}

TEST_CASE("greetings: a process that was held up reads before it judges", "[store]") {
  boost::asio::io_context loop{1};
  acc::launcher::StoreServer server(loop, {.greeting_timeout = kPatience});
  auto client = StoreClient::greeted(server.port());
  while (server.connections() == 0) loop.run_one();
  client.set("/k", "v");
  // Nobody runs the loop while the deadline passes.
  boost::asio::io_context other{1};
  boost::asio::steady_timer(other, kPatience * 2).wait();
  loop.run_for(kPatience / 2);
  CHECK(server.connections() == 1);
}

TEST_CASE("greetings: a server that is gone judges nobody", "[store]") {
  boost::asio::io_context loop{1};
  auto server = std::make_unique<acc::launcher::StoreServer>(loop, acc::launcher::StoreServerOptions{});
  const StoreClient silent(server->port());
  while (server->connections() == 0) loop.run_one();
  server.reset();
  loop.run();  // returns: no timer is left
  SUCCEED();
}

namespace {

struct FakeGuest : acc::launcher::Guest {
  bool is_awaited() const override { return awaited; }
  bool has_unread() override { return unread; }
  void end() override { ended = true, awaited = false; }

  bool awaited = true;
  bool unread = false;
  bool ended = false;
};

}  // namespace

TEST_CASE("greetings: of too many the oldest ends, but nobody who has greeted or just says it", "[store]") {
  boost::asio::io_context loop{1};
  const auto greetings =
      std::make_shared<acc::launcher::Greetings>(loop, acc::launcher::Greetings::Limits{.max_guests = 2});
  std::vector<std::shared_ptr<FakeGuest>> guests;
  const auto come = [&] {
    guests.push_back(std::make_shared<FakeGuest>());
    greetings->expect(guests.back());
  };
  come();
  come();
  guests[0]->awaited = false;
  come();
  CHECK_FALSE(guests[1]->ended);
  guests[1]->unread = true;
  come();
  CHECK(guests[2]->ended);
  CHECK_FALSE(guests[1]->ended);
  CHECK_FALSE(guests[3]->ended);
  guests[1]->unread = false;
  come();
  CHECK(guests[1]->ended);
  CHECK_FALSE(guests[0]->ended);
}
