// SPDX-License-Identifier: Apache-2.0
// With real timers; what the ranks say is made up at each look, so that it does not matter how long one
// takes.
#include "acc/launch/straggler_watch.hpp"

#include <boost/asio/post.hpp>

#include "support/catch.hpp"

namespace straggler_watch_test {

using namespace acc;
using namespace acc::launcher;
using namespace std::chrono_literals;

namespace {

/// Two ranks, of which the second is slow in data. Between two looks of the watch they make 10 steps.
struct Watched {
  explicit Watched(int workers = 2) : watch(loop, workers, parts(), 1ms) {}

  StragglerWatchParts parts() {
    return {.job = [this]() -> const JobView& { return job; },
            .progress = [this](int local_rank) { return look(local_rank); },
            .send = [this](const AgentEvent& event) { found.push_back(std::get<Straggler>(event)); }};
  }

  std::optional<Progress> look(int local_rank) {
    ++looks;
    if (silent) return std::nullopt;
    Progress& page = pages.at(static_cast<std::size_t>(local_rank));
    page.steps += 10;
    page.step_ended += 1s;
    page.spent[1] += local_rank == 1 ? 500ms : 100ms;
    page.spent[3] += local_rank == 1 ? 500ms : 900ms;
    return page;
  }

  void start() {
    watch.report(AttemptStarted{});
    for (const RankView& rank : job.ranks) watch.report(WorkerStarted{.local_rank = rank.local_rank});
  }

  boost::asio::io_context loop = {};
  JobView job = {.attempt = 4, .ranks = {{.rank = 6}, {.rank = 7, .local_rank = 1}}};
  std::array<Progress, 2> pages = {};
  bool silent = false;
  int looks = 0;
  std::vector<Straggler> found = {};
  StragglerWatch watch;
};

}  // namespace

TEST_CASE("straggler_watch: names the slow rank, and its job shows it", "[launch]") {
  Watched watched;
  watched.start();
  while (watched.found.empty()) watched.loop.run_one();
  CHECK(watched.found[0].attempt == 4);
  CHECK(watched.found[0].rank == 7);
  CHECK(watched.found[0].other == 6);
  CHECK(watched.found[0].slow.section == acc::Section::data);
  CHECK(watched.found[0].slow.spent == 50ms);
  for (RankView& rank : watched.job.ranks) rank.progress.emplace();
  watched.watch.mark(watched.job);
  CHECK(watched.job.ranks[0].progress->slow_in.empty());
  CHECK(watched.job.ranks[1].progress->slow_in == "data");
  watched.watch.report(Finished{});
  watched.loop.run();
}

TEST_CASE("straggler_watch: the next attempt is compared anew", "[launch]") {
  Watched watched;
  for (std::size_t attempt = 1; attempt <= 2; ++attempt) {
    watched.start();
    while (watched.found.size() < attempt) watched.loop.run_one();
    watched.watch.report(Restarting{});
  }
  watched.loop.run();
  CHECK(watched.found.size() == 2);
}

TEST_CASE("straggler_watch: never looks at a single rank, nor at a suspended job", "[launch]") {
  Watched single(1);
  single.start();
  CHECK(single.loop.run() == 0);

  Watched watched;
  watched.start();
  watched.watch.report(Suspended{});
  watched.loop.run();
  CHECK(watched.looks == 0);
  watched.loop.restart();
  watched.watch.report(Resumed{});
  while (watched.found.empty()) watched.loop.run_one();
}

TEST_CASE("straggler_watch: what says nothing at first is looked at later", "[launch]") {
  Watched watched;
  watched.silent = true;
  watched.start();
  while (watched.looks < 20) watched.loop.run_one();
  watched.silent = false;
  while (watched.found.empty()) watched.loop.run_one();
}

TEST_CASE("straggler_watch: ends even if its timer has expired already", "[launch]") {
  boost::asio::io_context loop;
  int looks = 0;
  {
    const JobView job;
    StragglerWatch watch(loop, 2, {.job = [&]() -> const JobView& {
                           ++looks;
                           return job;
                         }},
                         0ms);
    watch.report(WorkerStarted{.local_rank = 1});
    // Takes what has expired into the queue, without running it.
    boost::asio::post(loop, [] {});
    loop.poll_one();
  }
  loop.run();
  CHECK(looks == 0);
}

}  // namespace straggler_watch_test
