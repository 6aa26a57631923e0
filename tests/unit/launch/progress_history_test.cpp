// SPDX-License-Identifier: Apache-2.0
#include "acc/launch/progress_history.hpp"

#include <algorithm>

#include "support/catch.hpp"

namespace progress_history_test {

using namespace acc;
using namespace acc::launcher;
using namespace std::chrono_literals;

namespace {

using TimePoint = RankHistory::TimePoint;

/// Ranks 6, whose steps are those of the looks at it, and 7, which has ended none.
struct Watched {
  explicit Watched(std::chrono::milliseconds period)
      : history(loop, 2,
                {.job = [this]() -> const JobView& { return job; },
                 .progress = [this](int local_rank) { return look(local_rank); }},
                period) {}

  void start(const Round& round = {.world_size = 2}) {
    history.report(AttemptStarted{0, round});
    history.report(WorkerStarted{.rank = 6, .local_rank = 0});
    history.report(WorkerStarted{.rank = 7, .local_rank = 1});
  }

  Progress look(int local_rank) {
    if (local_rank == 0) ++looks;
    return {.steps = local_rank == 0 ? looks : 0};
  }

  std::size_t samples() const {
    const auto past = history.of(6);
    return past ? past->seconds.size() : 0;
  }

  void run_until(std::size_t count) {
    while (samples() < count) loop.run_one();
  }

  boost::asio::io_context loop = {};
  JobView job = {.ranks = {{.rank = 6}, {.rank = 7, .local_rank = 1}}};
  int looks = 0;
  ProgressHistory history;
};

}  // namespace

TEST_CASE("rank_history: ten minutes by the second, a day by the minute", "[launch]") {
  RankHistory history;
  const TimePoint begin = {};
  constexpr int kTwoDays = 2 * 24 * 3600;
  for (int second = 0; second < kTwoDays; ++second) history.add(begin + second * 1s, {.steps = second});
  const StepHistory view = history.view(begin + (kTwoDays - 1) * 1s);
  REQUIRE(view.seconds.size() == 600);
  CHECK(view.seconds.front().age == 599s);
  CHECK(view.seconds.back().steps == kTwoDays - 1);
  REQUIRE(view.minutes.size() == 1440);
  CHECK(view.minutes.back().steps == kTwoDays - 60);
  CHECK(view.minutes[1].steps - view.minutes[0].steps == 60);
}

TEST_CASE("rank_history: the time in a section goes on until the page is read", "[launch]") {
  RankHistory history;
  Progress page = {.steps = 1, .section = acc::Section::data, .section_began = progress_now() - 1h};
  page.spent[static_cast<std::size_t>(acc::Section::data)] = 2h;
  history.add({}, page);
  const StepHistory::Sample sample = history.view({}).seconds.at(0);
  CHECK(sample.data >= 3h);
  CHECK(sample.data < 4h);
  CHECK(sample.communication == 0s);
}

TEST_CASE("progress_history: has the ranks that have ended a step", "[launch]") {
  Watched watched(1ms);
  watched.start();
  CHECK_FALSE(watched.history.of(6));
  watched.run_until(3);
  const auto past = watched.history.of(6);
  CHECK(std::ranges::is_sorted(past->seconds, {}, &StepHistory::Sample::steps));
  CHECK(past->minutes.size() == 1);
  CHECK_FALSE(watched.history.of(7));
  CHECK_FALSE(watched.history.of(8));
}

TEST_CASE("progress_history: goes on over a restart with the same ranks, begins anew with others",
          "[launch]") {
  Watched watched(1ms);
  watched.start();
  watched.run_until(2);
  watched.history.report(Restarting{});
  watched.start();
  watched.run_until(3);
  watched.start({.first_rank = 2, .world_size = 4});
  CHECK(watched.samples() == 0);
}

TEST_CASE("progress_history: never looks at a suspended job", "[launch]") {
  Watched watched(0ms);
  watched.start();
  watched.history.report(Suspended{});
  watched.loop.run();
  CHECK(watched.looks == 0);
  watched.loop.restart();
  watched.history.report(Resumed{});
  watched.run_until(1);
}

}  // namespace progress_history_test
