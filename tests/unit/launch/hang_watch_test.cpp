// SPDX-License-Identifier: Apache-2.0
// With real timers and this machine's /proc, while hang_watch_idle_test has a clock of its own. /proc must
// show this process. Each sample, one in 10 ms, reads all of it, so that among thousands of processes a hang
// of 80 ms is seen later. How fast the machine is matters to one case alone, which wants it seen within 1 s
// of the time in which acc can run. It does not matter whether gdb is installed: PATH is empty.
#include "acc/launch/hang_watch.hpp"

#include <unistd.h>

#include <boost/asio/post.hpp>
#include <boost/asio/steady_timer.hpp>
#include <functional>
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
  /// In a job of several nodes: what this one says of its ranks, and what follows.
  std::vector<NodeHangStage> told = {};
  std::function<std::string(const NodeHang&)> answer = [](const NodeHang&) { return std::string(); };
  std::vector<NodeIdle> idle_nodes = {};
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
                         if (const auto* idle = std::get_if<NodeIdle>(&found)) idle_nodes.push_back(*idle);
                         if (std::holds_alternative<HangExamined>(found)) watch.report(Finished{});
                       },
                   .stack_options = [] { return StackOptions{.environment = {{"PATH", ""}}}; },
                   .tell_hang =
                       [this](const NodeHang& hang) {
                         told.push_back(hang.stage);
                         return answer(hang);
                       }}};
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

TEST_CASE("hang_watch: in a job of several nodes it waits until all are idle, and until all were examined",
          "[launch]") {
  Watched watched(80ms);
  const auto lead = [&](JobHangStage stage, int number) {
    boost::asio::post(watched.loop,
                      [&, stage, number] { watched.watch.on_job_hang({.stage = stage, .number = number}); });
  };
  watched.answer = [&](const NodeHang& hang) {
    if (hang.stage == NodeHangStage::idle) lead(JobHangStage::suspected, 3);
    if (hang.stage == NodeHangStage::confirmed) lead(JobHangStage::found, hang.number);
    if (hang.stage == NodeHangStage::examined) lead(JobHangStage::examined, hang.number);
    CHECK(watched.reported.empty() == (hang.stage != NodeHangStage::examined));
    CHECK(hang.number == (hang.stage == NodeHangStage::idle ? 0 : 3));
    return std::string();
  };
  watched.watch.report(AttemptStarted{.round = {.num_machines = 2}});
  watched.loop.run();  // until it is told that all were examined
  CHECK(watched.told == std::vector{NodeHangStage::idle, NodeHangStage::confirmed, NodeHangStage::examined});
  CHECK(watched.reported.size() == 1);
  CHECK(watched.stacks.ends_with("gdb is not on PATH\n"));
}

TEST_CASE("hang_watch: a node whose ranks go on takes back that they are idle", "[launch]") {
  const bool is_suspended = GENERATE(true, false);
  Watched watched(80ms);
  watched.watch.report(AttemptStarted{.round = {.num_machines = 2}});
  while (watched.told.empty()) watched.loop.run_one();
  if (is_suspended) {
    watched.watch.report(Suspended{});
  } else {
    watched.written = 1;
    while (watched.told.size() < 2) watched.loop.run_one();
  }
  watched.watch.on_job_hang({.stage = JobHangStage::suspected, .number = 1});  // was on its way
  CHECK(watched.told == std::vector{NodeHangStage::idle, NodeHangStage::active, NodeHangStage::active});
  CHECK(watched.reported.empty());
}

TEST_CASE("hang_watch: a node that is asked whether its ranks are still idle looks again", "[launch]") {
  Watched watched(80ms);
  watched.watch.report(AttemptStarted{.round = {.num_machines = 2}});
  while (watched.told.empty()) watched.loop.run_one();
  // Since the last look a rank may have become active.
  watched.written = 1;
  watched.watch.on_job_hang({.stage = JobHangStage::suspected, .number = 1});
  CHECK(watched.told == std::vector{NodeHangStage::idle});
  while (watched.told.size() < 2) watched.loop.run_one();
  CHECK(watched.told == std::vector{NodeHangStage::idle, NodeHangStage::active});
}

TEST_CASE("hang_watch: the other nodes do not wait for the stacks of one that is suspended", "[launch]") {
  Watched watched(1h);
  watched.watch.report(AttemptStarted{.round = {.num_machines = 2}});
  watched.watch.on_job_hang({.stage = JobHangStage::found, .number = 1});
  CHECK(watched.told.empty());
  watched.watch.report(Suspended{});
  CHECK(watched.told == std::vector{NodeHangStage::examined});
  watched.watch.on_job_hang({.stage = JobHangStage::found, .number = 2});
  CHECK(watched.told.size() == 2);
}

TEST_CASE("hang_watch: one that cannot know of the other nodes does not examine its ranks", "[launch]") {
  const bool is_told_later = GENERATE(true, false);
  Watched watched(80ms);
  watched.answer = [&](const NodeHang&) { return is_told_later ? "" : "the nodes meet in a file"; };
  watched.watch.report(AttemptStarted{.round = {.num_machines = 2}});
  while (watched.told.empty()) watched.loop.run_one();
  if (is_told_later) watched.watch.on_job_hang({.stage = JobHangStage::unknown});
  REQUIRE(watched.idle_nodes.size() == 1);
  CHECK(watched.idle_nodes[0].attempt == 4);
  CHECK(watched.idle_nodes[0].idle >= 80ms);
  CHECK(watched.idle_nodes[0].reason ==
        (is_told_later ? "some of them cannot say whether theirs are" : "the nodes meet in a file"));
  CHECK(watched.reported.empty());
}

}  // namespace hang_watch_test
