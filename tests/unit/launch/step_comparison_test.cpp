// SPDX-License-Identifier: Apache-2.0
// Simulated trainings: steps of 100 ms with noise, whose ranks wait for the slowest in backward.
#include "acc/launch/step_comparison.hpp"

#include <algorithm>
#include <functional>
#include <optional>
#include <random>

#include "support/catch.hpp"

namespace step_comparison_test {

using namespace acc;
using namespace acc::launcher;
using namespace std::chrono_literals;
using std::chrono::nanoseconds;

namespace {

using Seconds = std::chrono::duration<double>;
using Stragglers = std::vector<StepComparison::Straggler>;

struct Training {
  explicit Training(std::size_t ranks, double noise_of_sections = 0, unsigned seed = 0)
      : pages(ranks, Progress{.pid = 1}), noise(noise_of_sections), random(seed) {}

  /// One step.
  void advance() {
    std::vector<Seconds> times(pages.size());
    for (std::size_t i = 0; i < pages.size(); ++i) {
      for (const auto& [section, time] : kEven) times[i] += spend(i, section, time * factor());
      times[i] += spend(i, slow_section, i == slow_rank ? delay : 0s) + kBackward * factor();
    }
    const Seconds longest = *std::ranges::max_element(times);
    for (std::size_t i = 0; i < pages.size(); ++i) {
      if (in_step) spend(i, acc::Section::backward, longest - times[i] + kBackward);
      ++pages[i]->steps;
      pages[i]->step_ended += std::chrono::duration_cast<nanoseconds>(longest);
      if (says_whole_steps) pages[i]->spent_in_steps = pages[i]->spent;
    }
    now += std::chrono::duration_cast<nanoseconds>(longest);
  }

  /// The same; then the pages are read.
  Stragglers step() {
    advance();
    auto seen = pages;
    if (ended) seen[*ended].reset();
    return comparison.observe(seen, now);
  }

  /// What was found in so many steps.
  Stragglers steps(int count, const std::function<void(int)>& before = [](int) {}) {
    Stragglers all;
    for (int i = 0; i < count; ++i) {
      before(i);
      std::ranges::copy(step(), std::back_inserter(all));
    }
    return all;
  }

  /// After how many steps the first is found, which is `rank`; -1: not within `count`.
  int found_after(std::size_t rank, int count) {
    for (int i = 1; i <= count; ++i) {
      const Stragglers stragglers = step();
      if (!stragglers.empty()) return stragglers[0].rank == rank ? i : -1;
    }
    return -1;
  }

  Seconds spend(std::size_t rank, acc::Section section, Seconds time) {
    pages[rank]->spent[static_cast<std::size_t>(section)] += std::chrono::duration_cast<nanoseconds>(time);
    return time;
  }

  std::optional<acc::Section> slow_in(std::size_t rank) const {
    const std::vector<SlowRank> slow = comparison.slow();
    const auto one = std::ranges::find(slow, static_cast<int>(rank), &SlowRank::rank);
    return one == slow.end() ? std::nullopt : std::optional(one->section);
  }

  double factor() { return std::max(0.0, 1 + noise * normal(random)); }

  static constexpr std::array kEven = {
      std::pair(acc::Section::other, Seconds(2ms)), std::pair(acc::Section::data, Seconds(20ms)),
      std::pair(acc::Section::forward, Seconds(30ms)), std::pair(acc::Section::optimizer, Seconds(8ms))};
  static constexpr Seconds kBackward = 40ms;

  std::vector<std::optional<Progress>> pages;
  double noise;
  std::mt19937 random;
  std::normal_distribution<double> normal = {};
  std::size_t slow_rank = 0;
  acc::Section slow_section = acc::Section::data;
  Seconds delay = 0s;
  /// Whose page is not there any more.
  std::optional<std::size_t> ended = {};
  /// Whether they wait for each other in each step.
  bool in_step = true;
  bool says_whole_steps = true;
  StepComparison::TimePoint now = {};
  StepComparison comparison = {};
};

/// What a page says `time` after a step has begun that made it `end` from `begin`.
Progress during_step(const Progress& begin, const Progress& end, nanoseconds time) {
  Progress page = begin;
  for (std::size_t i = 0; i < page.spent.size(); ++i) {
    time -= end.spent[i] - begin.spent[i];
    if (time < 0ns) break;
    page.spent[i] = end.spent[i];
  }
  return page;
}

/// A training over nodes of four ranks. Each reads its pages once in `period`, at its own moments, and the
/// first one compares what all have read.
struct NodesTraining : Training {
  NodesTraining(std::size_t nodes, nanoseconds the_period, double noise_of_sections, unsigned seed)
      : Training(4 * nodes, noise_of_sections, seed), period(the_period), seen(pages.size()) {
    for (std::size_t i = 0; i < nodes; ++i)
      due.push_back(now + period * static_cast<int>(random() % 1000) / 1000);
  }

  /// One step, during which some nodes read their pages.
  Stragglers step() {
    const auto before = pages;
    const auto began = now;
    advance();
    Stragglers stragglers;
    for (std::size_t node = 0; node < due.size(); ++node) {
      for (; due[node] < now; due[node] += period + nanoseconds(random() % 5'000'000)) {
        for (std::size_t i = 4 * node; i < 4 * node + 4; ++i)
          seen[i] = during_step(*before[i], *pages[i], due[node] - began);
        if (node == 0) std::ranges::copy(comparison.observe(seen, now), std::back_inserter(stragglers));
      }
    }
    return stragglers;
  }

  Stragglers steps(int count) {
    Stragglers all;
    for (int i = 0; i < count; ++i) std::ranges::copy(step(), std::back_inserter(all));
    return all;
  }

  nanoseconds period;
  std::vector<StepComparison::TimePoint> due = {};
  std::vector<std::optional<Progress>> seen;
};

}  // namespace

TEST_CASE("step_comparison: says in which section a rank is slow, how slow, and for how long", "[launch]") {
  Training training(4);
  training.slow_rank = 2;
  training.delay = 10ms;
  const Stragglers stragglers = training.steps(100);
  REQUIRE(stragglers.size() == 1);
  CHECK(stragglers[0].rank == 2);
  CHECK(stragglers[0].other == std::nullopt);
  const SlowSection& slow = stragglers[0].slow;
  CHECK(slow.section == acc::Section::data);
  CHECK(slow.spent == 30ms);
  CHECK(slow.reference == 20ms);
  CHECK(std::chrono::round<std::chrono::milliseconds>(slow.step) == 110ms);
  CHECK(slow.duration >= 20 * 110ms);
  CHECK(training.slow_in(2) == acc::Section::data);
  CHECK(training.slow_in(1) == std::nullopt);
}

TEST_CASE("step_comparison: a rank that is slow by 10 % of a step is found within 30 steps", "[launch]") {
  const double noise = GENERATE(0.0, 0.05, 0.1);
  const std::size_t ranks = GENERATE(2U, 3U, 4U, 8U);
  const acc::Section section = GENERATE(acc::Section::data, acc::Section::forward, acc::Section::optimizer);
  for (unsigned seed = 0; seed < 3; ++seed) {
    Training training(ranks, noise, seed);
    CHECK(training.steps(100).empty());
    training.slow_rank = ranks - 1;
    training.slow_section = section;
    training.delay = 14ms;  // of a step, which the delay and the slowest of the others make longer
    CAPTURE(noise, ranks, name_of(section), seed);
    const int steps = training.found_after(ranks - 1, 30);
    CHECK(steps > 0);
  }
}

TEST_CASE("step_comparison: even ranks are not slow, however their steps vary", "[launch]") {
  const double noise = GENERATE(0.05, 0.1, 0.2, 0.4);
  const std::size_t ranks = GENERATE(2U, 3U, 4U, 8U);
  for (unsigned seed = 0; seed < 4; ++seed) {
    CAPTURE(noise, ranks, seed);
    CHECK(Training(ranks, noise, seed).steps(1000).empty());
  }
}

TEST_CASE("step_comparison: even ranks of several nodes are not slow, though read at different moments",
          "[launch]") {
  const auto period = GENERATE(50ms, 250ms, 1000ms);  // half a step, some steps, many
  const std::size_t nodes = GENERATE(2U, 8U);
  const double noise = GENERATE(0.0, 0.1, 0.4);
  NodesTraining training(nodes, period, noise, 0);
  training.says_whole_steps = GENERATE(true, false);
  CAPTURE(period.count(), nodes, noise, training.says_whole_steps);
  CHECK(training.steps(1000).empty());
}

TEST_CASE("step_comparison: a rank of another node that is slow by 10 % of a step is found as soon",
          "[launch]") {
  const auto period = GENERATE(50ms, 100ms);  // half a step, and a whole one
  const std::size_t nodes = GENERATE(2U, 8U);
  const acc::Section section = GENERATE(acc::Section::data, acc::Section::forward, acc::Section::optimizer);
  for (unsigned seed = 0; seed < 3; ++seed) {
    NodesTraining training(nodes, period, 0.1, seed);
    CAPTURE(period.count(), nodes, name_of(section), seed);
    CHECK(training.steps(100).empty());
    training.slow_rank = 5;
    training.slow_section = section;
    training.delay = 14ms;
    const Stragglers stragglers = training.steps(30);
    REQUIRE(stragglers.size() == 1);
    CHECK(stragglers[0].rank == 5);
    CHECK(stragglers[0].slow.section == section);
  }
}

TEST_CASE("step_comparison: a program that tells no whole steps is compared, too", "[launch]") {
  NodesTraining training(2, 50ms, 0.1, 0);
  training.says_whole_steps = false;
  CHECK(training.steps(100).empty());
  training.slow_rank = 5;
  training.delay = 30ms;
  CHECK(training.steps(100).size() == 1);
}

TEST_CASE("step_comparison: a long step now and then makes no slow rank", "[launch]") {
  for (unsigned seed = 0; seed < 4; ++seed) {
    Training training(4, 0.1, seed);
    std::bernoulli_distribution is_long(0.02);
    CAPTURE(seed);
    CHECK(training
              .steps(1000,
                     [&](int) {
                       training.slow_rank = training.random() % 4;
                       training.delay = is_long(training.random) ? 1s : 0s;
                     })
              .empty());
  }
}

TEST_CASE("step_comparison: where ranks differ anyway, one of them must differ more", "[launch]") {
  const auto uneven = [](Seconds last) {
    Training training(8);
    return training.steps(200, [&](int) {
      for (std::size_t i = 0; i < 7; ++i) {
        training.spend(i, acc::Section::data, static_cast<double>(i) * 4ms);
        training.spend(i, acc::Section::backward, last - static_cast<double>(i) * 4ms);
      }
      training.spend(7, acc::Section::data, last);
    });
  };
  CHECK(uneven(28ms).empty());
  CHECK(uneven(100ms).size() == 1);
}

TEST_CASE("step_comparison: the first steps do not count", "[launch]") {
  Training training(2);
  training.delay = 5s;
  CHECK(training.steps(10).empty());
  training.delay = 0s;
  CHECK(training.steps(100).empty());
}

TEST_CASE("step_comparison: time in which the ranks were suspended is not compared", "[launch]") {
  Training training(2);
  CHECK(training.steps(100).empty());
  for (int stops = 0; stops < 20; ++stops) {
    training.comparison.interrupt();
    training.spend(0, acc::Section::data, 1h);
    training.spend(1, acc::Section::backward, 1h);
    CHECK(training.steps(20).empty());
  }
  training.delay = 20ms;
  CHECK(training.steps(100).size() == 1);
}

TEST_CASE("step_comparison: is said once, and again only after the rank was even", "[launch]") {
  Training training(2);
  training.delay = 20ms;
  const Stragglers first = training.steps(500);
  REQUIRE(first.size() == 1);
  CHECK(first[0].other == 1U);
  training.delay = 0s;
  CHECK(training.steps(100).empty());
  CHECK(training.slow_in(0) == std::nullopt);
  training.delay = 20ms;
  CHECK(training.steps(100).empty());  // the last warning is not ten minutes old
  CHECK(training.slow_in(0) == acc::Section::data);
  training.delay = 0s;
  CHECK(training.steps(100).empty());
  training.now += 10min;
  training.delay = 20ms;
  CHECK(training.steps(100).size() == 1);
}

TEST_CASE("step_comparison: outside of all sections a rank is slow only if others wait in collectives",
          "[launch]") {
  Training training(3);
  // Rank 0 waits there for the others, whose backward is slow: a collective that nobody sees.
  CHECK(training
            .steps(200,
                   [&](int) {
                     training.spend(0, acc::Section::other, 10ms);
                     for (std::size_t i = 1; i < 3; ++i) training.spend(i, acc::Section::backward, 10ms);
                   })
            .empty());
  const Stragglers stragglers = training.steps(200, [&](int) {
    training.spend(1, acc::Section::other, 20ms);
    for (const std::size_t i : {0U, 2U}) training.spend(i, acc::Section::communication, 20ms);
  });
  REQUIRE(stragglers.size() == 1);
  CHECK(stragglers[0].rank == 1);
  CHECK(stragglers[0].slow.section == acc::Section::other);
}

TEST_CASE("step_comparison: when a rank has ended, the others are compared", "[launch]") {
  Training training(4);
  training.slow_rank = 1;
  training.delay = 20ms;
  CHECK(training.steps(100).size() == 1);
  training.ended = 3;
  training.delay = 0s;
  CHECK(training.steps(3).empty());
  CHECK(training.slow_in(1) == std::nullopt);
  training.slow_rank = 2;
  training.delay = 20ms;
  const Stragglers stragglers = training.steps(100);
  REQUIRE(stragglers.size() == 1);
  CHECK(stragglers[0].rank == 2);
}

TEST_CASE("step_comparison: a rank that never ends a step keeps nobody from being compared", "[launch]") {
  Training training(4);
  training.slow_rank = 1;
  training.delay = 20ms;
  training.pages[3] = Progress{.pid = 9, .process_start = 9};
  const Progress idle = *training.pages[3];
  Stragglers all;
  for (int i = 0; i < 40; ++i) {
    training.advance();
    auto pages = training.pages;
    pages[3] = idle;
    std::ranges::copy(training.comparison.observe(pages, training.now), std::back_inserter(all));
  }
  REQUIRE(all.size() == 1);
  CHECK(all[0].rank == 1);
}

TEST_CASE("step_comparison: a slow rank may be slow in another section, too", "[launch]") {
  Training training(3);
  training.delay = 20ms;
  CHECK(training.steps(100).size() == 1);
  CHECK(training.steps(100, [&](int) { training.spend(0, acc::Section::forward, 30ms); }).size() == 1);
}

TEST_CASE("step_comparison: evaluations and saves do not count", "[launch]") {
  Training training(4);
  const auto work = GENERATE(acc::Section::evaluation, acc::Section::saving);
  CHECK(training
            .steps(200,
                   [&](int) {
                     training.spend(0, work, 1s);
                     for (std::size_t i = 1; i < 4; ++i) training.spend(i, acc::Section::communication, 1s);
                   })
            .empty());
}

TEST_CASE("step_comparison: nobody is slow for whom nobody waits", "[launch]") {
  // Each on its own, or waiting where no wait is told from work, as a host for its GPU.
  Training training(2);
  training.in_step = false;
  training.delay = 50ms;
  CHECK(training.steps(200).empty());
}

TEST_CASE("step_comparison: a step count that falls begins a new training, with its first steps",
          "[launch]") {
  Training training(2);
  CHECK(training.steps(50).empty());
  for (auto& page : training.pages) page->steps = 0;
  training.delay = 5s;
  CHECK(training.steps(9).empty());
  training.delay = 0s;
  CHECK(training.steps(100).empty());
  for (auto& page : training.pages) page->steps = 0;
  training.delay = 20ms;
  CHECK(training.steps(100).size() == 1);
  for (auto& page : training.pages) page->steps = 0;
  CHECK(training.steps(100).empty());  // that rank 0 is slow has been said
}

TEST_CASE("step_comparison: pages that come later, are missed once, or are alone", "[launch]") {
  Training training(3);
  training.slow_rank = 1;
  training.delay = 20ms;
  auto& pages = training.pages;
  const auto second = std::exchange(pages[2], std::nullopt);
  const auto first = std::exchange(pages[0], std::nullopt);
  CHECK(training.comparison.observe(pages, training.now).empty());
  CHECK(training.comparison.observe({std::nullopt, std::nullopt, std::nullopt}, training.now).empty());
  pages[0] = first;
  pages[2] = second;
  const Stragglers stragglers =
      training.steps(100, [&](int) { training.comparison.observe({pages[0], std::nullopt, pages[2]}, {}); });
  REQUIRE(stragglers.size() == 1);
  CHECK(stragglers[0].rank == 1);
}

}  // namespace step_comparison_test
