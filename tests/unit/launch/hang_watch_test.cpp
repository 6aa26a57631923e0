// SPDX-License-Identifier: Apache-2.0
// With real timers and this machine's /proc, while hang_watch_idle_test has a clock of its own. /proc must
// show this process. Each sample, one in 10 ms, reads all of it, so that among thousands of processes a hang
// of 80 ms is seen later. How fast the machine is matters to one case alone, which wants it seen within 1 s
// of the time in which acc can run. It does not matter whether gdb is installed: PATH is empty.
#include "acc/launch/hang_watch.hpp"

#include <unistd.h>

#include <boost/asio/steady_timer.hpp>
#include <thread>

#include "support/catch.hpp"

namespace hang_watch_test {

using namespace acc;
using namespace acc::launcher;
using namespace std::chrono_literals;

namespace {

/// One rank, this test, with a short timeout; only output counts, since the test uses the CPU.
struct Watched {
  explicit Watched(std::chrono::milliseconds timeout)
      : plan{.timeout = timeout, .watch = ActivityKind::output} {}

  boost::asio::io_context loop = {};
  HangPlan plan;
  JobView job = {.attempt = 4, .ranks = {{.rank = 2, .pid = ::getpid()}}};
  std::uint64_t written = 0;
  bool writes = false;
  std::vector<Hung> reported = {};
  std::string stacks = {};
  HangWatch watch{loop,
                  plan,
                  {.job = [this]() -> const JobView& { return job; },
                   .view = [this] { return job; },
                   .progress = [](int) { return std::nullopt; },
                   .written = [this](int) { return writes ? ++written : written; },
                   .send =
                       [this](const AgentEvent& found) {
                         if (const auto* hung = std::get_if<Hung>(&found)) reported.push_back(*hung);
                         if (const auto* more = std::get_if<HangStacks>(&found)) stacks += more->text;
                         if (std::holds_alternative<HangExamined>(found)) watch.report(Finished{});
                       },
                   .stack_options = [] { return StackOptions{.environment = {{"PATH", ""}}}; }}};
};

}  // namespace

TEST_CASE("hang_watch: reports the state of each rank when none writes", "[launch]") {
  Watched watched(80ms);
  watched.watch.report(AttemptStarted{});
  watched.loop.run();
  REQUIRE(watched.reported.size() == 1);
  CHECK(watched.reported[0].attempt == 4);
  CHECK(watched.reported[0].idle >= 80ms);
  CHECK(watched.reported[0].rank_states.starts_with("rank 2: "));
  CHECK(watched.reported[0].rank_states.find("stacks") == std::string::npos);
  CHECK(watched.stacks.starts_with("\nrank 2 (local rank 0, pid "));
  CHECK(watched.stacks.ends_with("gdb is not on PATH\n"));
}

TEST_CASE("hang_watch: a rank that writes does not hang", "[launch]") {
  Watched watched(80ms);
  watched.writes = true;
  watched.watch.report(AttemptStarted{});
  while (watched.written < 40) watched.loop.run_one();
  CHECK(watched.reported.empty());
}

TEST_CASE("hang_watch: ends with the job, and never begins without a timeout", "[launch]") {
  Watched watched(1h);
  watched.watch.report(AttemptStarted{});
  watched.watch.report(Stopping{});
  watched.loop.run();
  CHECK(watched.reported.empty());

  Watched off(0ms);
  off.watch.report(AttemptStarted{});
  CHECK(off.loop.run() == 0);
}

TEST_CASE("hang_watch: a job that is suspended does not hang", "[launch]") {
  Watched watched(80ms);
  watched.watch.report(AttemptStarted{});
  watched.watch.report(Suspended{});
  watched.loop.run();
  CHECK(watched.reported.empty());
  watched.loop.restart();
  watched.watch.report(Resumed{});
  watched.loop.run();
  CHECK(watched.reported.size() == 1);
}

TEST_CASE("hang_watch: time in which acc itself could not run does not count", "[launch]") {
  Watched watched(80ms);
  watched.watch.report(AttemptStarted{});
  // As if acc were stopped, after it has begun to wait.
  boost::asio::steady_timer stopped(watched.loop, 1ms);
  stopped.async_wait([&](boost::system::error_code) { std::this_thread::sleep_for(1s); });
  watched.loop.run();
  REQUIRE(watched.reported.size() == 1);
  CHECK(watched.reported[0].idle < 1s);
}

TEST_CASE("hang_watch: ends even if its timer has expired already", "[launch]") {
  Watched watched(80ms);
  watched.watch.report(AttemptStarted{});
  // Before the watch's handler in the loop's queue, when both timers have expired.
  boost::asio::steady_timer earlier(watched.loop, 5ms);
  earlier.async_wait([&](boost::system::error_code) { watched.watch.report(Finished{}); });
  std::this_thread::sleep_for(30ms);
  watched.loop.run();
  CHECK(watched.reported.empty());
}

}  // namespace hang_watch_test
