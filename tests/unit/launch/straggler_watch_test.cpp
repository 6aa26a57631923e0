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

/// Ten more steps, of a rank that is slow in data or waits for one in backward.
void advance(Progress& page, bool is_slow) {
  page.steps += 10;
  page.step_ended += 1s;
  page.spent[1] += is_slow ? 500ms : 100ms;
  page.spent[3] += is_slow ? 500ms : 900ms;
}

/// Two ranks, of which the second is slow in data. Between two looks of the watch they make 10 steps.
struct Watched {
  explicit Watched(int workers = 2) : watch(loop, workers, parts(), 1ms) {}

  StragglerWatchParts parts() {
    return {.job = [this]() -> const JobView& { return job; },
            .progress = [this](int local_rank) { return look(local_rank); },
            .send = [this](const AgentEvent& event) { stragglers.push_back(std::get<Straggler>(event)); },
            .tell_progress = [this](const auto& ranks) { return tell(ranks); },
            .tell_slow = [this](const auto& ranks) { told_slow.push_back(ranks); },
            .host = "a"};
  }

  std::optional<Progress> look(int local_rank) {
    ++looks;
    if (silent) return std::nullopt;
    Progress& page = pages.at(static_cast<std::size_t>(local_rank));
    advance(page, local_rank == 1 && !even);
    return page;
  }

  bool tell(const std::vector<RankProgress>& ranks) {
    if (!is_led) return false;
    told.push_back(ranks);
    return true;
  }

  void start() {
    watch.report(AttemptStarted{.round = round});
    for (const RankView& rank : job.ranks) watch.report(WorkerStarted{.local_rank = rank.local_rank});
  }

  boost::asio::io_context loop = {};
  JobView job = {.attempt = 4, .ranks = {{.rank = 6}, {.rank = 7, .local_rank = 1}}};
  Round round = {.world_size = 8};
  std::array<Progress, 2> pages = {};
  bool silent = false;
  bool even = false;
  /// Another node leads the job.
  bool is_led = false;
  std::vector<std::vector<RankProgress>> told = {};
  std::vector<std::vector<SlowRank>> told_slow = {};
  int looks = 0;
  std::vector<Straggler> stragglers = {};
  StragglerWatch watch;
};

}  // namespace

TEST_CASE("straggler_watch: names the slow rank, and its job shows it", "[launch]") {
  Watched watched;
  watched.start();
  while (watched.stragglers.empty()) watched.loop.run_one();
  CHECK(watched.stragglers[0].attempt == 4);
  CHECK(watched.stragglers[0].rank == 7);
  CHECK(watched.stragglers[0].other == 6);
  CHECK(watched.stragglers[0].slow.section == acc::Section::data);
  CHECK(watched.stragglers[0].slow.spent == 50ms);
  CHECK(watched.stragglers[0].host.empty());
  CHECK(watched.told_slow.empty());
  for (RankView& rank : watched.job.ranks) rank.progress.emplace();
  watched.watch.mark(watched.job);
  CHECK(watched.job.ranks[0].progress->slow_in.empty());
  CHECK(watched.job.ranks[1].progress->slow_in == "data");
  watched.watch.report(Finished{});
  watched.loop.run();
}

TEST_CASE("straggler_watch: the node that leads compares the ranks of all, and says which are slow",
          "[launch]") {
  Watched watched;
  watched.round.num_machines = 2;
  watched.even = true;
  watched.start();
  NodeProgress other = {.ranks = {{2, {}}, {3, {}}, {8, {}}, {-1, {}}, {7, {}}},
                        .node = 5,
                        .host = "b"};  // two of no rank, one not its own
  const auto run_until = [&](auto holds) {
    while (!holds()) {
      for (auto& [rank, page] : other.ranks) advance(page, watched.even && rank == 3);
      watched.watch.on_progress(other);
      watched.loop.run_one();
    }
  };
  run_until([&] { return !watched.stragglers.empty(); });
  CHECK(watched.stragglers[0].rank == 3);
  CHECK(watched.stragglers[0].host == "b");
  CHECK(watched.stragglers[0].other == std::nullopt);
  CHECK(watched.told_slow == std::vector<std::vector<SlowRank>>{{{3, acc::Section::data}}});
  for (RankView& rank : watched.job.ranks) rank.progress.emplace();
  watched.watch.mark(watched.job);
  for (const RankView& rank : watched.job.ranks) CHECK(rank.progress->slow_in.empty());
  watched.even = false;
  run_until([&] { return watched.stragglers.size() == 2; });
  CHECK(watched.stragglers[1].rank == 7);
  CHECK(watched.stragglers[1].host == "a");
  CHECK(watched.told_slow.size() >= 3);
  CHECK(watched.told_slow[1].empty());  // rank 3 is as fast as the others again
  CHECK(watched.told_slow.back() == std::vector<SlowRank>{{7, acc::Section::data}});
}

TEST_CASE("straggler_watch: a node that is led tells how far its ranks are, and compares none", "[launch]") {
  const int workers = GENERATE(1, 2);
  Watched watched(workers);
  watched.round.num_machines = 2;
  watched.is_led = watched.silent = true;
  watched.job.ranks.resize(static_cast<std::size_t>(workers));
  watched.start();
  while (watched.looks < 6) watched.loop.run_one();
  CHECK(watched.told.empty());  // none has said anything yet
  watched.silent = false;
  while (watched.told.size() < 20) watched.loop.run_one();
  CHECK(watched.told[19].size() == watched.job.ranks.size());
  CHECK(watched.told[19][0] == RankProgress{6, watched.pages[0]});
  watched.silent = true;
  while (!watched.told.back().empty()) watched.loop.run_one();
  CHECK(watched.stragglers.empty());
  watched.watch.on_slow({{3, acc::Section::forward}, {6, acc::Section::data}});
  for (RankView& rank : watched.job.ranks) rank.progress.emplace();
  watched.watch.mark(watched.job);
  CHECK(watched.job.ranks[0].progress->slow_in == "data");
  if (workers == 2) CHECK(watched.job.ranks[1].progress->slow_in.empty());
}

TEST_CASE("straggler_watch: the more nodes there are, the more seldom each tells how far its ranks are",
          "[launch]") {
  Watched watched;
  watched.round.num_machines = 200;  // 20 messages in a millisecond
  watched.is_led = true;
  watched.start();
  while (watched.told.empty()) watched.loop.run_one();
  const auto began = std::chrono::steady_clock::now();
  while (watched.told.size() < 4) watched.loop.run_one();
  CHECK(std::chrono::steady_clock::now() - began > 25ms);
}

TEST_CASE("straggler_watch: the next attempt is compared anew", "[launch]") {
  Watched watched;
  for (std::size_t attempt = 1; attempt <= 2; ++attempt) {
    watched.start();
    while (watched.stragglers.size() < attempt) watched.loop.run_one();
    watched.watch.report(Restarting{});
  }
  watched.loop.run();
  CHECK(watched.stragglers.size() == 2);
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
  while (watched.stragglers.empty()) watched.loop.run_one();
}

TEST_CASE("straggler_watch: a node that is suspended says so, and one that is silent is not compared",
          "[launch]") {
  Watched led;
  led.is_led = true;
  led.start();
  while (led.told.empty()) led.loop.run_one();
  led.watch.report(Suspended{});
  CHECK(led.told.back().empty());

  // A node that has said something once, and nothing since, keeps the others from nothing.
  Watched watched;
  watched.round.num_machines = 2;
  watched.start();
  watched.watch.on_progress({.ranks = {{2, {.steps = 1}}}, .node = 5, .host = "b"});
  while (watched.stragglers.empty()) watched.loop.run_one();
  CHECK(watched.stragglers[0].rank == 7);
  CHECK(watched.stragglers[0].other == 6);
}

TEST_CASE("straggler_watch: what says nothing at first is looked at later", "[launch]") {
  Watched watched;
  watched.silent = true;
  watched.start();
  while (watched.looks < 20) watched.loop.run_one();
  watched.silent = false;
  while (watched.stragglers.empty()) watched.loop.run_one();
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
