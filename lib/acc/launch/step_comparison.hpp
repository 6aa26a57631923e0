// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <chrono>
#include <cstddef>
#include <deque>
#include <map>
#include <optional>
#include <set>
#include <utility>
#include <vector>

#include "acc/base/progress_page.hpp"
#include "acc/rendezvous/rank_progress.hpp"

namespace acc::launcher {

/// The section in which a rank loses time in each step.
struct SlowSection {
  acc::Section section = acc::Section::other;
  /// In this section, per step: this rank's time, and the median of all ranks or, of two, the other's time.
  std::chrono::nanoseconds spent = {};
  std::chrono::nanoseconds reference = {};
  /// A whole step, without evaluations and saves.
  std::chrono::nanoseconds step = {};
  /// How long it has been so.
  std::chrono::milliseconds duration = {};

  bool operator==(const SlowSection&) const = default;
};

/// Compares the ranks of a training, and finds those for which the others wait. Compared is the time of a
/// step in data, forward, optimizer, and what has no name; backward and communication have the wait for
/// others in them, and evaluations and saves do not count. A rank is slow in a section if there it takes
/// longer, by 5 % of a step or more, if that is far beyond the noise of the steps and the spread of the
/// ranks, and if meanwhile it waits less than the others do.
class StepComparison {
 public:
  using TimePoint = std::chrono::steady_clock::time_point;

  struct Straggler {
    std::size_t rank = 0;
    /// The only other rank; nullopt: there are several.
    std::optional<std::size_t> other = {};
    SlowSection slow = {};
    bool operator==(const Straggler&) const = default;
  };

  /// Takes the newest page of each rank, in the same order each time. Pages of several machines need not be
  /// of the same moment: a window of a rank goes from one of its pages to another. A rank is compared from
  /// the end of its first step on. Returns the ranks that have become slow: each once for a section, and
  /// again only after it was even in between, and ten minutes at the earliest.
  std::vector<Straggler> observe(const std::vector<std::optional<Progress>>& pages, TimePoint now);

  /// The time until the next page is not compared, since a rank stood still for other reasons.
  void interrupt() { is_interrupted_ = true; }

  /// The ranks that are slow now, each once, in order.
  std::vector<SlowRank> slow() const;

 private:
  using Times = std::array<double, kSections.size()>;
  /// The seconds of a step, for each rank.
  struct Window {
    TimePoint began = {};
    std::vector<Times> ranks = {};
  };

  bool is_continued(const std::vector<Progress>& pages) const;
  void begin(std::vector<std::size_t> ranks, std::vector<Progress> pages, TimePoint now);
  std::vector<Straggler> judge(TimePoint now);
  SlowSection describe(std::size_t index, acc::Section section, TimePoint now) const;
  std::vector<double> losses(const Window& window, const std::vector<acc::Section>& sections) const;
  std::vector<std::vector<double>> losses(const std::vector<acc::Section>& sections) const;

  /// Those that say how far they are.
  std::vector<std::size_t> ranks_ = {};
  /// Their pages when the window that goes on began.
  std::vector<Progress> first_ = {};
  TimePoint began_ = {};
  bool warming_up_ = true;
  bool is_interrupted_ = false;
  std::deque<Window> windows_ = {};
  /// How often in a row a page of those could not be read.
  int missed_ = 0;
  std::set<std::pair<std::size_t, acc::Section>> slow_ = {};
  /// When each was last reported.
  std::map<std::pair<std::size_t, acc::Section>, TimePoint> report_times_ = {};
};

}  // namespace acc::launcher
