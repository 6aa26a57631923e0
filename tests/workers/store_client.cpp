// SPDX-License-Identifier: Apache-2.0
// Every operation of our client against a store: store_client HOST PORT. Prints what went wrong.
#include <boost/asio/io_context.hpp>
#include <cstdio>
#include <exception>
#include <optional>
#include <string>
#include <vector>

#include "acc/base/running_clock.hpp"
#include "acc/store/client.hpp"
#include "support/drive.hpp"

namespace {

using acc::launcher::StoreClient;
using acc::launcher::StoreOutcome;
using std::chrono::milliseconds;
using Texts = std::vector<std::string>;

constexpr milliseconds kLong = std::chrono::seconds(30);

int failures = 0;

void check(bool holds, const char* what) {
  if (holds) return;
  std::printf("FAILED: %s\n", what);
  ++failures;
}

// Calls `ask(handler)` and returns the reply.
template <typename Value, typename Ask>
Value answer(boost::asio::io_context& loop, Ask ask) {
  std::optional<Value> value;
  ask([&](StoreOutcome outcome, Value got) {
    check(outcome == StoreOutcome::done, "an operation is done");
    value = std::move(got);
  });
  acc::test::drive(loop, [&] { return value.has_value(); });
  return *value;
}

void values(boost::asio::io_context& loop, StoreClient& a, StoreClient& b) {
  a.set("/a", "12");
  a.multi_set({{"/b", "3"}, {"/empty", ""}});
  const std::string long_value(5'000'000, 'x');
  a.set("/long", long_value);
  a.check({}, [](StoreOutcome, bool) {});
  const auto get = [&](const std::string& key) {
    return answer<std::optional<std::string>>(loop, [&](auto handler) { b.get(key, handler); });
  };
  answer<bool>(loop, [&](auto handler) { a.check({"/long"}, handler); });
  check(get("/a") == "12", "a short value");
  check(get("/empty") == "", "an empty value is a value");
  check(get("/long") == long_value, "a long value");
  check(!get("/missing"), "a missing value is absent");
  const auto many = [&](const Texts& keys) {
    return answer<StoreClient::Values>(loop, [&](auto handler) { b.multi_get(keys, handler); });
  };
  check(many({"/a", "/b", "/empty"}) == Texts{"12", "3", ""}, "multi_get");
  check(!many({"/a", "/missing"}), "multi_get of what is missing");
}

void numbers(boost::asio::io_context& loop, StoreClient& a) {
  const auto add = [&](std::int64_t delta) {
    return answer<std::int64_t>(loop, [&](auto handler) { a.add("/n", delta, handler); });
  };
  check(add(5) == 5 && add(-7) == -2, "add");
  const auto compare = [&](const std::string& key, const std::string& expected, const std::string& desired) {
    return answer<std::string>(loop, [&](auto handler) { a.compare_set(key, expected, desired, handler); });
  };
  check(compare("/c", "", "x") == "x", "compare_set of a new key");
  check(compare("/c", "y", "z") == "x", "compare_set in vain");
  check(compare("/c", "x", "z") == "z", "compare_set");
  check(compare("/none", "x", "z") == "x", "compare_set of a missing key");
  check(answer<bool>(loop, [&](auto handler) { a.delete_key("/c", handler); }), "delete_key");
  check(!answer<bool>(loop, [&](auto handler) { a.delete_key("/c", handler); }), "delete_key of none");
}

void waits(boost::asio::io_context& loop, StoreClient& a, StoreClient& b) {
  for (int i = 0; i < 50; ++i) {
    std::optional<StoreOutcome> outcome;
    const std::string key = "/race/" + std::to_string(i);
    a.wait({key}, milliseconds(1), [&](StoreOutcome ended) { outcome = ended; });
    if (i % 2 == 0) b.set(key, "x");
    acc::test::drive(loop, [&] { return outcome.has_value(); });
    check(i % 2 == 0 || outcome == StoreOutcome::timed_out, "a wait in vain ends");
    answer<bool>(loop, [&](auto handler) { a.check({}, handler); });
  }
  // torch's server ends a wait for a key on which a compare_set fails.
  std::optional<Texts> got;
  a.get_when_present({"/late"}, kLong, [&](StoreOutcome, Texts texts) { got = std::move(texts); });
  answer<std::string>(loop, [&](auto handler) { b.compare_set("/late", "x", "y", handler); });
  check(!got, "a wake-up for nothing is not believed");
  b.set("/late", "1");
  acc::test::drive(loop, [&] { return got.has_value(); });
  check(*got == Texts{"1"}, "get_when_present");
}

}  // namespace

int main(int /*argc*/, char** argv) try {
  boost::asio::io_context loop{1};
  StoreClient a(loop);
  StoreClient b(loop);
  const acc::launcher::StoreAddress address = {argv[1], static_cast<std::uint16_t>(std::stoi(argv[2]))};
  for (StoreClient* client : {&a, &b}) {
    client->connect(address, acc::RunningClock::now() + kLong, {}, [](const auto& error) {
      if (error) throw std::runtime_error(error->what());
    });
  }
  values(loop, a, b);
  numbers(loop, a);
  waits(loop, a, b);
  return failures == 0 ? 0 : 1;
} catch (const std::exception& error) {
  std::printf("FAILED: %s\n", error.what());
  return 1;
}
