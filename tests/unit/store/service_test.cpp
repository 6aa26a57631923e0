// SPDX-License-Identifier: Apache-2.0
#include "acc/store/service.hpp"

#include <map>
#include <string>
#include <vector>

#include "support/catch.hpp"

namespace service_test {

namespace {

using acc::launcher::Op;
using acc::launcher::Request;
using namespace std::string_literals;

const std::string kReady(1, '\0');
const std::string kNotReady(1, '\1');
const std::string kStop(1, '\0');
const std::string kCanceled(1, '\1');
const std::string kNothing;
const std::string kRefused = "(refused)";
constexpr acc::launcher::ClientId kUs = 1;
constexpr acc::launcher::ClientId kThem = 2;
constexpr acc::launcher::ClientId kOthers = 3;

std::string number(std::int64_t value) {
  return {reinterpret_cast<const char*>(&value), sizeof value};
}
std::string text(const std::string& bytes) {
  return number(static_cast<std::int64_t>(bytes.size())) + bytes;
}

/// A store and the replies to its clients.
struct Store {
  /// The immediate reply to `client`.
  std::string ask(acc::launcher::ClientId client, Request request) {
    acc::launcher::Replies replies;
    acc::launcher::Work work = {.request = std::move(request)};
    if (service.carry_out(client, acc::launcher::Writer::member, work, replies) !=
        acc::launcher::Service::Outcome::done)
      return kRefused;
    std::string answer;
    for (const std::string_view piece : replies.front(1000)) answer += piece;
    return answer;
  }
  std::vector<acc::launcher::ClientId> woken() { return service.take_woken(); }

  acc::launcher::Service service;
};

using Clients = std::vector<acc::launcher::ClientId>;

Request set(const std::string& key, const std::string& value = "v") {
  return {.op = Op::set, .keys = {key}, .values = {value}};
}
Request get(const std::string& key) {
  return {.op = Op::get, .keys = {key}};
}
Request add(const std::string& key, std::int64_t delta) {
  return {.op = Op::add, .keys = {key}, .number = delta};
}
Request check(std::vector<std::string> keys) {
  return {.op = Op::check, .keys = std::move(keys)};
}
Request wait(std::vector<std::string> keys) {
  return {.op = Op::wait, .keys = std::move(keys)};
}
Request compare_set(const std::string& key, const std::string& expected, const std::string& desired) {
  return {.op = Op::compare_set, .keys = {key}, .values = {expected, desired}};
}
Request append(const std::string& key, const std::string& bytes) {
  return {.op = Op::append, .keys = {key}, .values = {bytes}};
}
Request erase(const std::string& key) {
  return {.op = Op::delete_key, .keys = {key}};
}
Request push(const std::string& key, const std::string& value = "v") {
  return {.op = Op::queue_push, .keys = {key}, .values = {value}};
}
Request pop(const std::string& key) {
  return {.op = Op::queue_pop, .keys = {key}};
}
Request queue_len(const std::string& key) {
  return {.op = Op::queue_len, .keys = {key}};
}
Request barrier(const std::string& key, std::int64_t world_size) {
  return {.op = Op::barrier, .keys = {key}, .number = world_size};
}
Request cancel() {
  return {.op = Op::cancel_wait};
}

}  // namespace

TEST_CASE("service: validate has no reply, ping replies its nonce", "[store]") {
  Store store;
  CHECK(store.ask(kUs, {.op = Op::validate, .number = acc::launcher::kStoreMagic}) == kNothing);
  CHECK(store.ask(kUs, {.op = Op::ping, .number = 0x2136}) == "\x36\x21\x00\x00"s);
}

TEST_CASE("service: set has no reply, get replies the value", "[store]") {
  Store store;
  CHECK(store.ask(kUs, set("k", "value")) == kNothing);
  CHECK(store.ask(kThem, get("k")) == text("value"));
}

TEST_CASE("service: a missing key reads as empty", "[store]") {
  Store store;
  store.ask(kUs, set("k", "1"));
  CHECK(store.ask(kUs, get("missing")) == text(""));
  CHECK(store.ask(kUs, {.op = Op::multi_get, .keys = {"k", "missing", "k"}}) ==
        text("1") + text("") + text("1"));
  CHECK(store.ask(kUs, {.op = Op::multi_get}) == kNothing);
}

TEST_CASE("service: add replies the sum", "[store]") {
  Store store;
  CHECK(store.ask(kUs, add("n", 5)) == number(5));
  CHECK(store.ask(kUs, add("n", -7)) == number(-2));
  CHECK(store.ask(kUs, get("n")) == text("-2"));
}

TEST_CASE("service: add to a value that is not a number is refused", "[store]") {
  Store store;
  store.ask(kUs, set("n", "apples"));
  CHECK(store.ask(kUs, add("n", 1)) == kRefused);
  CHECK(store.ask(kUs, barrier("n", 2)) == kRefused);
  CHECK(store.ask(kUs, get("n")) == text("apples"));
}

TEST_CASE("service: compare_set replies what the key holds, or what was expected of a missing one",
          "[store]") {
  Store store;
  CHECK(store.ask(kUs, compare_set("k", "", "1")) == text("1"));
  CHECK(store.ask(kUs, compare_set("k", "1", "2")) == text("2"));
  CHECK(store.ask(kUs, compare_set("k", "1", "3")) == text("2"));
  CHECK(store.ask(kUs, compare_set("missing", "x", "y")) == text("x"));
  CHECK(store.ask(kUs, check({"missing"})) == kNotReady);
}

TEST_CASE("service: check is about all keys and queues", "[store]") {
  Store store;
  store.ask(kUs, set("k"));
  store.ask(kUs, push("q"));
  CHECK(store.ask(kUs, check({"k", "q"})) == kReady);
  CHECK(store.ask(kUs, check({"k", "missing"})) == kNotReady);
  CHECK(store.ask(kUs, check({})) == kReady);
}

TEST_CASE("service: delete replies the number of deleted keys", "[store]") {
  Store store;
  store.ask(kUs, set("k"));
  CHECK(store.ask(kUs, erase("k")) == number(1));
  CHECK(store.ask(kUs, erase("k")) == number(0));
}

TEST_CASE("service: append and multi_set have no reply", "[store]") {
  Store store;
  CHECK(store.ask(kUs, append("a", "12")) == kNothing);
  CHECK(store.ask(kUs, append("a", "34")) == kNothing);
  CHECK(store.ask(kUs, {.op = Op::multi_set, .keys = {"b", "c"}, .values = {"1", "2"}}) == kNothing);
  CHECK(store.ask(kUs, {.op = Op::multi_set}) == kNothing);
  CHECK(store.ask(kUs, {.op = Op::multi_get, .keys = {"a", "b", "c"}}) ==
        text("1234") + text("1") + text("2"));
}

TEST_CASE("service: keys are counted and listed without queues", "[store]") {
  Store store;
  store.ask(kUs, add("init/", 1));
  store.ask(kUs, set("/b"));
  store.ask(kUs, push("/q"));
  CHECK(store.ask(kUs, {.op = Op::get_num_keys}) == number(2));
  CHECK(store.ask(kUs, {.op = Op::list_keys}) == number(2) + text("/b") + text("init/"));
}

TEST_CASE("service: queue_pop replies the length before the pop", "[store]") {
  Store store;
  CHECK(store.ask(kUs, push("q", "1")) == kNothing);
  CHECK(store.ask(kUs, push("q", "2")) == kNothing);
  CHECK(store.ask(kUs, queue_len("q")) == number(2));
  CHECK(store.ask(kUs, pop("q")) == number(2) + text("1"));
  CHECK(store.ask(kUs, pop("q")) == number(1) + text("2"));
  CHECK(store.ask(kUs, pop("q")) == number(0));
  CHECK(store.ask(kUs, queue_len("q")) == number(0));
}

TEST_CASE("service: a wait for what exists ends at once", "[store]") {
  Store store;
  store.ask(kUs, set("k"));
  store.ask(kUs, push("q"));
  CHECK(store.ask(kUs, wait({"k", "q"})) == kStop);
  CHECK(store.ask(kUs, wait({})) == kStop);
  CHECK(store.service.waiting() == 0);
}

TEST_CASE("service: a wait ends when the key comes to exist", "[store]") {
  Store store;
  CHECK(store.ask(kUs, wait({"k"})) == kNothing);
  SECTION("set") {
    store.ask(kThem, set("k", ""));
  }
  SECTION("add") {
    store.ask(kThem, add("k", 0));
  }
  SECTION("append") {
    store.ask(kThem, append("k", ""));
  }
  SECTION("multi_set") {
    store.ask(kThem, {.op = Op::multi_set, .keys = {"a", "k"}, .values = {"", ""}});
  }
  SECTION("compare_set") {
    store.ask(kThem, compare_set("k", "", "x"));
  }
  SECTION("barrier") {
    store.ask(kThem, barrier("k", 2));
  }
  SECTION("queue_push") {
    store.ask(kThem, push("k"));
  }
  CHECK(store.woken() == Clients{kUs});
}

TEST_CASE("service: a wait goes on while the key does not exist", "[store]") {
  Store store;
  store.ask(kUs, wait({"k"}));
  SECTION("a compare_set that stores nothing") {
    store.ask(kThem, compare_set("k", "x", "y"));
  }
  SECTION("a read") {
    store.ask(kThem, get("k"));
  }
  SECTION("a delete") {
    store.ask(kThem, erase("k"));
  }
  SECTION("an empty pop") {
    store.ask(kThem, pop("k"));
  }
  SECTION("another key") {
    store.ask(kThem, set("kk"));
  }
  CHECK(store.woken().empty());
  CHECK(store.service.waiting() == 1);
}

TEST_CASE("service: a wait for a full queue and a missing key ends with the key", "[store]") {
  Store store;
  store.ask(kThem, push("q"));
  CHECK(store.ask(kUs, wait({"q", "k"})) == kNothing);
  store.ask(kThem, set("k"));
  CHECK(store.woken() == Clients{kUs});
}

TEST_CASE("service: a wait that ended is not woken for again", "[store]") {
  Store store;
  store.ask(kUs, wait({"q"}));
  store.ask(kThem, push("q"));
  CHECK(store.woken() == Clients{kUs});
  store.ask(kUs, pop("q"));
  store.ask(kUs, wait({"another"}));
  store.ask(kThem, push("q"));
  CHECK(store.woken().empty());
}

TEST_CASE("service: cancel_wait is answered, waiting or not, and no wake-up follows", "[store]") {
  Store store;
  CHECK(store.ask(kUs, cancel()) == kCanceled);
  store.ask(kUs, wait({"k"}));
  CHECK(store.ask(kUs, cancel()) == kCanceled);
  store.ask(kThem, set("k"));
  CHECK(store.woken().empty());
  SECTION("a barrier too; its count stays") {
    store.ask(kUs, barrier("b", 2));
    CHECK(store.ask(kUs, cancel()) == kCanceled);
    CHECK(store.ask(kThem, barrier("b", 2)) == kStop);
    CHECK(store.woken().empty());
  }
}

TEST_CASE("service: a client that left is not woken", "[store]") {
  Store store;
  store.ask(kUs, wait({"k"}));
  store.service.leave(kUs);
  store.ask(kThem, set("k"));
  CHECK(store.woken().empty());
  CHECK(store.service.waiting() == 0);
}

TEST_CASE("service: what a client has set for its end appears when it leaves, unless it is there",
          "[store]") {
  Store store;
  store.ask(kUs, set("/a/acc/at_end/b", "ended"));
  store.ask(kUs, set("/a/acc/at_end/c", "ended"));
  store.ask(kUs, set("/a/c", "17"));
  store.ask(kThem, wait({"/a/b", "/a/c"}));
  CHECK(store.ask(kOthers, get("/a/b")) == text(""));
  store.service.leave(kOthers);
  CHECK(store.woken().empty());
  store.service.leave(kUs);
  CHECK(store.woken() == Clients{kThem});
  CHECK(store.ask(kThem, get("/a/b")) == text("ended"));
  CHECK(store.ask(kThem, get("/a/c")) == text("17"));
  CHECK(store.service.keys() == 2);
}

TEST_CASE("service: each push wakes one of those who wait", "[store]") {
  Store store;
  store.ask(kUs, wait({"q"}));
  store.ask(kThem, wait({"q"}));
  store.ask(kOthers, push("q", "A"));
  CHECK(store.woken() == Clients{kUs});
  store.ask(kOthers, push("q", "B"));
  CHECK(store.woken() == Clients{kThem});
  CHECK(store.ask(kUs, pop("q")) == number(2) + text("A"));
  CHECK(store.ask(kThem, pop("q")) == number(1) + text("B"));
}

TEST_CASE("service: a wake-up without a pop goes to the next client", "[store]") {
  Store store;
  store.ask(kUs, wait({"q"}));
  store.ask(kThem, wait({"q"}));
  store.ask(kOthers, push("q"));
  REQUIRE(store.woken() == Clients{kUs});
  SECTION("the client gives up") {
    store.ask(kUs, cancel());
  }
  SECTION("the client leaves") {
    store.service.leave(kUs);
  }
  SECTION("the client does something else") {
    store.ask(kUs, get("k"));
  }
  CHECK(store.woken() == Clients{kThem});
}

TEST_CASE("service: a value is offered to one client", "[store]") {
  Store store;
  for (const acc::launcher::ClientId client : {kUs, kThem, kOthers}) store.ask(client, wait({"q"}));
  store.ask(9, push("q"));
  store.ask(9, push("q"));
  REQUIRE(store.woken() == Clients{kUs, kThem});
  store.ask(kUs, pop("q"));
  CHECK(store.woken().empty());
}

TEST_CASE("service: a barrier opens when all have come", "[store]") {
  Store store;
  CHECK(store.ask(kUs, barrier("b", 3)) == kNothing);
  CHECK(store.ask(kThem, barrier("b", 3)) == kNothing);
  CHECK(store.ask(kOthers, get("b")) == text("2"));
  CHECK(store.woken().empty());
  CHECK(store.ask(kOthers, barrier("b", 3)) == kStop);
  CHECK(store.woken() == Clients{kUs, kThem});
  CHECK(store.ask(kOthers, barrier("b", 3)) == kStop);
}

TEST_CASE("service: a barrier's key is an ordinary counter", "[store]") {
  Store store;
  store.ask(kUs, barrier("b", 3));
  CHECK(store.ask(kUs, check({"b"})) == kReady);
  store.ask(kThem, set("b", "text"));
  CHECK(store.woken().empty());
  store.ask(kThem, set("b", "1"));
  CHECK(store.ask(kThem, add("b", 2)) == number(3));
  CHECK(store.woken() == Clients{kUs});
}

TEST_CASE("service: a request for many keys is carried out in pieces, and others are served in between",
          "[store]") {
  Store store;
  acc::launcher::Request many = {.op = Op::multi_set};
  for (int i = 0; i < 10; ++i) {
    many.keys.push_back("/" + std::to_string(i));
    many.values.push_back("v");
  }
  acc::launcher::Replies replies;
  acc::launcher::Work work = {.request = many};
  const auto go_on = [&] {
    return store.service.carry_out(kUs, acc::launcher::Writer::member, work, replies, 4);
  };
  CHECK(go_on() == acc::launcher::Service::Outcome::more);
  CHECK(store.ask(kThem, get("/3")) == text("v"));
  CHECK(store.ask(kThem, get("/4")) == text(""));
  CHECK(store.ask(kThem, wait({"/9"})).empty());
  CHECK(go_on() == acc::launcher::Service::Outcome::more);
  CHECK(go_on() == acc::launcher::Service::Outcome::done);
  CHECK(store.woken() == Clients{kThem});

  work = {.request = {.op = Op::wait, .keys = {"/0", "/a", "/b", "/c", "/d", "/e"}}};
  CHECK(go_on() == acc::launcher::Service::Outcome::more);
  for (const std::string key : {"/a", "/b", "/c", "/d", "/e"}) store.ask(kThem, set(key));
  CHECK(store.woken().empty());
  CHECK(go_on() == acc::launcher::Service::Outcome::done);
  CHECK(replies.size() == 1);
  CHECK(store.service.waiting() == 0);
}

TEST_CASE("service: keys are listed in pieces, with their number first", "[store]") {
  Store store;
  for (const std::string key : {"", "/a", "/b", "/c"}) store.ask(kUs, set(key));
  acc::launcher::Replies replies;
  acc::launcher::Work work = {.request = {.op = Op::list_keys}};
  const auto go_on = [&] {
    return store.service.carry_out(kUs, acc::launcher::Writer::member, work, replies, 2);
  };
  CHECK(go_on() == acc::launcher::Service::Outcome::more);
  CHECK(replies.empty());
  CHECK(store.ask(kThem, erase("/b")) == number(1));
  CHECK(go_on() == acc::launcher::Service::Outcome::done);
  std::string answer;
  for (const std::string_view piece : replies.front(10)) answer += piece;
  CHECK(answer == number(3) + text("") + text("/a") + text("/c"));
}

TEST_CASE("service: clients cannot change what the agent has set", "[store]") {
  Store store;
  acc::launcher::Replies replies;
  acc::launcher::Work work = {.request = set("/agent", "v")};
  CHECK(store.service.carry_out(kOthers, acc::launcher::Writer::agent, work, replies) ==
        acc::launcher::Service::Outcome::done);
  for (const Request& request :
       {set("/agent", "w"), append("/agent", "w"), add("/agent", 1), erase("/agent"),
        compare_set("/agent", "v", "w"), Request{.op = Op::barrier, .keys = {"/agent"}, .number = 1},
        Request{.op = Op::multi_set, .keys = {"/k", "/agent"}, .values = {"v", "w"}}}) {
    CAPTURE(static_cast<int>(request.op));
    CHECK(store.ask(kUs, request) == kRefused);
  }
  CHECK(store.ask(kUs, get("/agent")) == text("v"));
}

TEST_CASE("service: strangers store no more than their limit, until others overwrite it", "[store]") {
  acc::launcher::Service service(1000);
  const auto carry_out = [&](acc::launcher::Writer writer, Request request) {
    acc::launcher::Replies replies;
    acc::launcher::Work work = {.request = std::move(request)};
    return service.carry_out(kUs, writer, work, replies) == acc::launcher::Service::Outcome::done;
  };
  using acc::launcher::Writer;
  CHECK(carry_out(Writer::stranger, set("/k", std::string(500, 'x'))));
  CHECK_FALSE(carry_out(Writer::stranger, set("/l", std::string(500, 'x'))));
  CHECK_FALSE(carry_out(Writer::stranger, append("/k", std::string(500, 'x'))));
  CHECK_FALSE(carry_out(Writer::stranger, push("/q", std::string(500, 'x'))));
  CHECK(carry_out(Writer::member, set("/l", std::string(5000, 'x'))));
  CHECK(carry_out(Writer::member, append("/k", "y")));
  CHECK(carry_out(Writer::stranger, push("/q", std::string(500, 'x'))));
  CHECK(carry_out(Writer::member, pop("/q")));
  CHECK(carry_out(Writer::stranger, set("/m", std::string(500, 'x'))));
  CHECK(carry_out(Writer::stranger, erase("/m")));
  CHECK(carry_out(Writer::stranger, set("/n", std::string(500, 'x'))));
  service.forget_except([](std::string_view) { return false; });
  CHECK(carry_out(Writer::stranger, set("/o", std::string(500, 'x'))));
}

}  // namespace service_test
