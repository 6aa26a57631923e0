// SPDX-License-Identifier: Apache-2.0
// That a lookup that blocks does not hold up the end of acc is tested by cli/blocked_names_test.py.
#include "acc/store/resolver.hpp"

#include <atomic>
#include <future>
#include <string>
#include <vector>

#include "support/catch.hpp"
#include "support/drive.hpp"
#include "support/slow_end.hpp"

namespace resolver_test {

using acc::HostLookup;
using acc::launcher::Resolver;

namespace {

// A name whose lookup ends when the test says so.
struct SlowName {
  std::promise<void> answers = {};
  std::shared_future<void> answered = answers.get_future().share();
  std::atomic<int> lookups = 0;

  Resolver::LookUp look_up() {
    return [this, answered = answered](const std::string&) {
      ++lookups;
      answered.wait();
      return HostLookup{.addresses = {"127.0.0.1"}};
    };
  }
};

}  // namespace

TEST_CASE("resolver: a numeric address waits for no lookup", "[store]") {
  boost::asio::io_context loop;
  SlowName slow;
  Resolver blocked(loop, slow.look_up());
  std::vector<std::string> done;
  const auto note = [&](const HostLookup& found) { done.push_back(found.addresses.front()); };
  blocked.resolve("numbers.test", note);
  Resolver other(loop, slow.look_up());
  other.resolve("::1", note);
  CHECK(done.empty());  // never during the call
  acc::test::drive(loop, [&] { return !done.empty(); });
  CHECK(done == std::vector<std::string>{"::1"});
  slow.answers.set_value();
  acc::test::drive(loop, [&] { return done.size() == 2; });
}

TEST_CASE("resolver: a name that is being looked up is not looked up again", "[store]") {
  boost::asio::io_context loop;
  SlowName slow;
  int cancelled = 0;
  int done = 0;
  Resolver first(loop, slow.look_up());
  first.resolve("again.test", [&](const HostLookup&) { ++cancelled; });
  first.resolve("again.test", [&](const HostLookup&) { ++done; });
  {
    Resolver gone(loop, slow.look_up());
    gone.resolve("again.test", [&](const HostLookup&) { ++cancelled; });
  }
  Resolver second(loop, slow.look_up());
  second.resolve("again.test", [&](const HostLookup&) { ++done; });
  slow.answers.set_value();
  acc::test::drive(loop, [&] { return done == 2; });
  loop.run();
  CHECK(cancelled == 0);
  CHECK(slow.lookups == 1);
}

TEST_CASE("resolver: who has a result may fork, for the thread of the lookup has ended", "[store]") {
  boost::asio::io_context loop;
  std::atomic<bool> ended = false;
  Resolver resolver(loop, [&](const std::string&) {
    acc::test::end_slowly(ended);
    return HostLookup{};
  });
  bool done = false;
  resolver.resolve("ended.test", [&](const HostLookup&) { done = true; });
  acc::test::drive(loop, [&] { return done; });
  CHECK(ended);
}

TEST_CASE("resolver: the loop waits for no lookup that was cancelled", "[store]") {
  SlowName slow;
  {
    boost::asio::io_context loop;
    Resolver resolver(loop, slow.look_up());
    resolver.resolve("cancelled.test", [](const HostLookup&) {});
    resolver.cancel();
    loop.run();
  }
  slow.answers.set_value();
  // The thread has ended what it does with the loop when the name can be looked up again.
  boost::asio::io_context loop;
  Resolver resolver(loop, slow.look_up());
  bool done = false;
  resolver.resolve("cancelled.test", [&](const HostLookup&) { done = true; });
  acc::test::drive(loop, [&] { return done; });
}

}  // namespace resolver_test
