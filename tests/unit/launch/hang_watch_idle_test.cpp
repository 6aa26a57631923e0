// SPDX-License-Identifier: Apache-2.0
#include <functional>

#include "acc/launch/hang_watch.hpp"
#include "support/catch.hpp"

namespace hang_watch_idle_test {

using namespace acc;
using namespace acc::launcher;
using namespace std::chrono_literals;

namespace {

/// Samples a fake clock.
struct Job {
  explicit Job(ActivityKind watch = ActivityKind::activity, std::chrono::milliseconds timeout = 40s)
      : clock(timeout, watch) {
    clock.restart(now);
  }

  /// The index of the first sample at which the job counts as hung, with `what` called before each; -1:
  /// never.
  int hangs_after(int looks, const std::function<void()>& what = [] {}) {
    for (int look = 1; look <= looks; ++look) {
      now += clock.interval();
      what();
      if (clock.observe(ranks, now)) return look;
    }
    return -1;
  }

  IdleClock clock;
  IdleClock::TimePoint now = IdleClock::TimePoint(1h);
  std::vector<RankActivity> ranks = {{}, {}};
};

}  // namespace

TEST_CASE("idle_clock: an idle job hangs after the timeout", "[launch]") {
  Job job;
  CHECK(job.clock.interval() == 5s);
  CHECK(job.hangs_after(20) == 9);  // the first sample only records the state
  CHECK(job.clock.idle(job.now) == 40s);
}

TEST_CASE("idle_clock: one rank that writes keeps the job alive", "[launch]") {
  Job job;
  CHECK(job.hangs_after(50, [&] { ++job.ranks[1].written; }) == -1);
  CHECK(job.hangs_after(50) == 8);
}

TEST_CASE("idle_clock: one rank that uses the CPU keeps the job alive, if CPU counts", "[launch]") {
  Job job;
  CHECK(job.hangs_after(50, [&] { job.ranks[0].cpu_time += 100ms; }) == -1);
  Job silent(ActivityKind::output);
  CHECK(silent.hangs_after(50, [&] { silent.ranks[0].cpu_time += 5s; }) == 9);
}

TEST_CASE("idle_clock: occasional wake-ups are not activity", "[launch]") {
  Job job;
  CHECK(job.hangs_after(50, [&] { job.ranks[0].cpu_time += 50ms; }) == 9);
}

TEST_CASE("idle_clock: with a short timeout, too, a process that wakes up now and then is idle", "[launch]") {
  // Gloo's threads use half a percent of a core while they wait.
  const std::chrono::milliseconds timeout = GENERATE(200ms, 1s, 3s);
  Job job(ActivityKind::activity, timeout);
  const auto interval = std::chrono::nanoseconds(job.clock.interval());
  CHECK(job.hangs_after(50, [&] { job.ranks[0].cpu_time += interval / 200; }) == 9);
  Job busy(ActivityKind::activity, timeout);
  CHECK(busy.hangs_after(50, [&] { busy.ranks[0].cpu_time += interval / 20; }) == -1);
}

TEST_CASE("idle_clock: a hang is reported once, and again after activity", "[launch]") {
  Job job;
  CHECK(job.hangs_after(20) == 9);
  CHECK(job.hangs_after(50) == -1);
  ++job.ranks[0].written;
  CHECK(job.hangs_after(20) == 9);
}

TEST_CASE("idle_clock: whoever enters a step, a section or a collective makes progress", "[launch]") {
  Job job(GENERATE(ActivityKind::activity, ActivityKind::progress));
  Progress& progress = job.ranks[1].progress.emplace(Progress{.section = acc::Section::forward});
  const auto enter = GENERATE(
      as<std::function<void(Progress&)>>(), [](Progress& now) { ++now.steps; },
      [](Progress& now) { now.section_began += 1s; }, [](Progress& now) { ++now.collectives; });
  CHECK(job.hangs_after(50, [&] { enter(progress); }) == -1);
  CHECK(job.hangs_after(50) == 8);
}

TEST_CASE("idle_clock: a rank that spins in a collective is idle", "[launch]") {
  Job job(GENERATE(ActivityKind::activity, ActivityKind::progress));
  for (RankActivity& rank : job.ranks)
    rank.progress = Progress{.section = acc::Section::communication, .collective = "all_reduce"};
  CHECK(job.hangs_after(50, [&] { job.ranks[0].cpu_time += 5s; }) == 9);
}

TEST_CASE("idle_clock: by progress alone, neither output nor CPU is progress", "[launch]") {
  Job job(ActivityKind::progress);
  for (RankActivity& rank : job.ranks) rank.progress = Progress{.section = acc::Section::backward};
  CHECK(job.hangs_after(50, [&] {
    ++job.ranks[0].written;
    job.ranks[1].cpu_time += 5s;
  }) == 9);
}

TEST_CASE("idle_clock: data, evaluations, saves and what has no name may last", "[launch]") {
  Job job(ActivityKind::progress);
  const acc::Section section =
      GENERATE(acc::Section::data, acc::Section::evaluation, acc::Section::saving, acc::Section::other);
  job.ranks[0].progress = Progress{.section = section};
  job.ranks[1].progress = Progress{.section = acc::Section::communication, .collective = "gather"};
  CHECK(job.hangs_after(50, [&] { job.ranks[0].cpu_time += 5s; }) == -1);
  CHECK(job.hangs_after(50) == 8);
}

TEST_CASE("idle_clock: a rank that says nothing is watched by its activity", "[launch]") {
  Job job(ActivityKind::progress);
  CHECK(job.hangs_after(50, [&] { job.ranks[0].cpu_time += 5s; }) == -1);
}

TEST_CASE("idle_clock: a restart begins anew", "[launch]") {
  Job job;
  CHECK(job.hangs_after(8) == -1);
  job.clock.restart(job.now);
  job.ranks = {{}, {}, {}};
  CHECK(job.hangs_after(20) == 9);
}

}  // namespace hang_watch_idle_test
