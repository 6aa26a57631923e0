// SPDX-License-Identifier: Apache-2.0
// With real timers; what the ranks say changes at each look, so that it does not matter how long one takes.
#include "acc/launch/progress_watch.hpp"

#include <boost/asio/post.hpp>

#include "support/catch.hpp"

namespace progress_watch_test {

using namespace acc;
using namespace acc::launcher;
using namespace std::chrono_literals;

namespace {

/// Rank 6, with a child, and rank 7, which says nothing in its first looks.
struct Watched {
  explicit Watched(std::chrono::milliseconds period) : watch(loop, parts(), period) {
    processes.add({.pid = 60, .parent = 1, .cpu_time = 2s, .resident_bytes = 100});
    processes.add({.pid = 61, .parent = 60, .cpu_time = 1s, .resident_bytes = 10});
  }

  ProgressWatchParts parts() {
    return {.job = [this]() -> const JobView& { return job; },
            .progress = [this](int local_rank) { return look(local_rank); },
            .processes = [this] { return processes; },
            .note = [this](const ProgressNoted& event) { notes.push_back(event); }};
  }

  std::optional<Progress> look(int local_rank) {
    ++looks;
    if (local_rank == 1 && looks < silent_looks) return std::nullopt;
    return Progress{.steps = looks, .step_scope = StepScope::training, .step_ended = progress_now()};
  }

  boost::asio::io_context loop = {};
  JobView job = {.ranks = {{.rank = 6, .pid = 60}, {.rank = 7, .local_rank = 1, .pid = 70}}};
  ProcessTable processes = {};
  int silent_looks = 20;
  int looks = 0;
  std::vector<ProgressNoted> notes = {};
  ProgressWatch watch;
};

}  // namespace

TEST_CASE("progress_watch: first steps are noted as soon as a rank, and then another one, has ended one",
          "[launch]") {
  Watched watched(1min);
  watched.silent_looks = 0;
  watched.watch.report(AttemptStarted{});
  while (watched.notes.empty()) watched.loop.run_one();
  REQUIRE(watched.notes[0].ranks.size() == 2);
  CHECK(watched.notes[0].ranks[0].rank == 6);
  CHECK(watched.notes[0].ranks[0].progress->steps > 0);
  CHECK(watched.notes[0].ranks[0].counts_over_restarts);
  CHECK(watched.notes[0].ranks[0].cpu_time == 3s);
  CHECK(watched.notes[0].ranks[0].memory_bytes == 110);
  CHECK_FALSE(watched.notes[0].ranks[1].cpu_time);
}

TEST_CASE("progress_watch: an attempt begins before its workers are started", "[launch]") {
  Watched watched(1min);
  watched.silent_looks = 0;
  const std::vector<RankView> ranks = std::exchange(watched.job.ranks, {});
  watched.watch.report(AttemptStarted{});
  watched.job.ranks = ranks;
  while (watched.notes.empty()) watched.loop.run_one();
  CHECK(watched.looks < 10);
}

TEST_CASE("progress_watch: a rank that says nothing does not hold up the others", "[launch]") {
  Watched watched(1min);
  watched.silent_looks = 6;
  watched.watch.report(AttemptStarted{});
  while (watched.notes.size() < 2) watched.loop.run_one();
  CHECK_FALSE(watched.notes[0].ranks[1].progress);
  CHECK(watched.notes[1].ranks[1].progress);
}

TEST_CASE("progress_watch: the first step after a hang is noted", "[launch]") {
  Watched watched(1min);
  watched.silent_looks = 0;
  watched.watch.report(AttemptStarted{});
  while (watched.notes.empty()) watched.loop.run_one();
  watched.watch.report(HangFound{});
  while (watched.notes.size() < 2) watched.loop.run_one();
  CHECK(watched.notes[1].ranks.size() == 2);
}

TEST_CASE("progress_watch: all running ranks are noted once a period, also those that say nothing",
          "[launch]") {
  Watched watched(5ms);
  watched.silent_looks = 1'000'000;
  watched.job.ranks.push_back({.rank = 8, .local_rank = 2, .ended = "exit code 0"});
  watched.watch.report(AttemptStarted{});
  while (watched.notes.size() < 3) watched.loop.run_one();
  REQUIRE(watched.notes[2].ranks.size() == 2);
  CHECK_FALSE(watched.notes[2].ranks[1].progress);
  watched.watch.report(Finished{});
  watched.loop.run();
  CHECK(watched.notes.size() == 3);
}

TEST_CASE("progress_watch: a rank that ends is noted, if it said how far it was", "[launch]") {
  Watched watched(1min);
  watched.watch.report(AttemptStarted{});
  watched.watch.report(WorkerFinished{.rank = 7, .local_rank = 1});
  CHECK(watched.notes.empty());
  watched.watch.report(WorkerFinished{.rank = 6, .local_rank = 0});
  REQUIRE(watched.notes.size() == 1);
  REQUIRE(watched.notes[0].ranks.size() == 1);
  CHECK(watched.notes[0].ranks[0].rank == 6);
  CHECK_FALSE(watched.notes[0].ranks[0].memory_bytes);
}

TEST_CASE("progress_watch: never looks at a suspended job", "[launch]") {
  Watched watched(0ms);
  watched.watch.report(AttemptStarted{});
  // Takes what has expired into the queue, without running it.
  boost::asio::post(watched.loop, [] {});
  watched.loop.poll_one();
  watched.watch.report(Suspended{});
  watched.loop.run();
  CHECK(watched.looks == 0);
  watched.loop.restart();
  watched.watch.report(Resumed{});
  while (watched.notes.empty()) watched.loop.run_one();
}

}  // namespace progress_watch_test
