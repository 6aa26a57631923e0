// SPDX-License-Identifier: Apache-2.0
#include "acc/launch/step_comparison.hpp"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <utility>

namespace acc::launcher {
namespace {

using Seconds = std::chrono::duration<double>;

/// Of a new training, or of one that goes on.
constexpr std::int64_t kWarmUpSteps = 10;
/// At least so many of each rank are a window.
constexpr std::int64_t kWindowSteps = 4;
/// Judged are the newest; how much the steps differ by chance is known from all that are kept.
constexpr std::size_t kJudgedWindows = 6;
constexpr std::size_t kKeptWindows = 24;

/// Of a step: what is less is not worth a warning.
constexpr double kMinLoss = 0.05;
/// Of the loss that was found: so much less than the others the rank must wait.
constexpr double kWaitPart = 0.5;
/// With fewer, one difference would be all that is known of how ranks differ.
constexpr std::size_t kMinRanksForSpread = 4;
/// In standard errors of the judged windows' median, and in standard deviations of the ranks.
constexpr double kMinErrors = 6;
constexpr double kMinDeviations = 6;

constexpr std::array kCompared = {acc::Section::data, acc::Section::forward, acc::Section::optimizer,
                                  acc::Section::other};
constexpr std::array kWaits = {acc::Section::backward, acc::Section::communication, acc::Section::other};

/// Of a rank whose page cannot be read for so many looks the process has ended, or stands still.
constexpr int kMaxMissed = 3;
/// Between two warnings of one rank and section: one that is slow now and then would fill the log.
constexpr std::chrono::minutes kMinPause{10};

// Of a normal distribution: a standard deviation by the median distance from the median, and by that of two
// values; and how much less the median of few values tells than their mean.
constexpr double kByMedianDistance = 1.4826;
constexpr double kByMedianDifference = 1.0484;
constexpr double kErrorOfMedian = 1.2533;

std::size_t index_of(acc::Section section) {
  return static_cast<std::size_t>(section);
}

double median(std::vector<double> values) {
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
  std::ranges::nth_element(values, middle);
  if (values.size() % 2 == 1) return *middle;
  return (*middle + *std::max_element(values.begin(), middle)) / 2;
}

// What each value is compared with: the median of all or, of two, the other one.
std::vector<double> references_of(const std::vector<double>& values) {
  if (values.size() == 2) return {values[1], values[0]};
  return std::vector<double>(values.size(), median(values));
}

// The standard deviation of what varies from window to window: neither one change nor a few long steps add
// to it.
double noise_of(const std::vector<double>& windows) {
  std::vector<double> differences;
  for (std::size_t i = 1; i < windows.size(); ++i)
    differences.push_back(std::abs(windows[i] - windows[i - 1]));
  return kByMedianDifference * median(std::move(differences));
}

double median_of_newest(const std::vector<double>& windows) {
  return median({windows.end() - kJudgedWindows, windows.end()});
}

// One step of a second in each of three windows makes no slow rank.
bool all_above(const std::vector<double>& windows, double bound) {
  return std::all_of(windows.end() - kJudgedWindows, windows.end(), [&](double one) { return one >= bound; });
}

// A loss that is not chance, nor a difference as other ranks have it, too. `losses`: for each rank those of
// its windows; `newest`: of the judged ones the medians.
double threshold(const std::vector<std::vector<double>>& losses, const std::vector<double>& newest) {
  std::vector<double> noise;
  for (const std::vector<double>& windows : losses) noise.push_back(noise_of(windows));
  const double error =
      median(std::move(noise)) * kErrorOfMedian / std::sqrt(static_cast<double>(kJudgedWindows));
  double spread = 0;
  if (newest.size() >= kMinRanksForSpread) {
    const double middle = median(newest);
    std::vector<double> distances;
    for (const double one : newest) distances.push_back(std::abs(one - middle));
    spread = kByMedianDistance * median(std::move(distances));
  }
  return std::max({kMinLoss, kMinErrors * error, kMinDeviations * spread});
}

// Where the others wait for a rank that is slow in this section. What has no name may be a wait itself, for a
// rank whose backward is slow: there only the time in collectives tells who waits.
std::vector<acc::Section> waits_beside(acc::Section section) {
  if (section == acc::Section::other) return {acc::Section::communication};
  return {kWaits.begin(), kWaits.end()};
}

std::chrono::nanoseconds duration_of(double seconds) {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(Seconds(seconds));
}

double sum_of(const std::array<double, kSections.size()>& times, const std::vector<acc::Section>& sections) {
  double sum = 0;
  for (const acc::Section section : sections) sum += times[index_of(section)];
  return sum;
}

// Without what does not count.
double step_of(const std::array<double, kSections.size()>& times) {
  return std::accumulate(times.begin(), times.end(), 0.0) - times[index_of(acc::Section::evaluation)] -
         times[index_of(acc::Section::saving)];
}

}  // namespace

std::vector<StepComparison::Straggler> StepComparison::observe(
    const std::vector<std::optional<Progress>>& pages, TimePoint now) {
  std::vector<std::size_t> ranks;
  std::vector<Progress> present;
  for (std::size_t i = 0; i < pages.size(); ++i) {
    // Who never ends a step, as one that only evaluates, is not waited for.
    if (!pages[i] || pages[i]->steps == 0) continue;
    ranks.push_back(i);
    present.push_back(*pages[i]);
  }
  // A page cannot be read while its process stands within a write.
  const bool misses_some = ranks != ranks_ && std::ranges::includes(ranks_, ranks);
  missed_ = misses_some ? missed_ + 1 : 0;
  if (misses_some && missed_ < kMaxMissed) return {};
  if (ranks != ranks_ || !is_continued(present) || is_interrupted_) {
    begin(std::move(ranks), std::move(present), now);
    return {};
  }
  Window window{.began = began_};
  for (std::size_t i = 0; i < present.size(); ++i) {
    const std::int64_t steps = present[i].steps - first_[i].steps;
    if (steps < (warming_up_ ? kWarmUpSteps : kWindowSteps)) return {};
    Times& times = window.ranks.emplace_back();
    for (std::size_t section = 0; section < times.size(); ++section) {
      const Seconds spent = times_of_steps(present[i])[section] - times_of_steps(first_[i])[section];
      times[section] = spent.count() / static_cast<double>(steps);
    }
  }
  first_ = std::move(present);
  began_ = now;
  if (std::exchange(warming_up_, false) || ranks_.size() < 2) return {};
  windows_.push_back(std::move(window));
  if (windows_.size() > kKeptWindows) windows_.pop_front();
  return windows_.size() < kJudgedWindows ? std::vector<Straggler>() : judge(now);
}

std::vector<SlowRank> StepComparison::slow() const {
  std::vector<SlowRank> ranks;
  for (const auto& [index, section] : slow_) {
    const int rank = static_cast<int>(index);
    if (ranks.empty() || ranks.back().rank != rank) ranks.push_back({rank, section});
  }
  return ranks;
}

bool StepComparison::is_continued(const std::vector<Progress>& pages) const {
  return std::ranges::equal(pages, first_, [](const Progress& page, const Progress& first) {
    return page.pid == first.pid && page.process_start == first.process_start && page.steps >= first.steps &&
           page.step_ended >= first.step_ended;
  });
}

void StepComparison::begin(std::vector<std::size_t> ranks, std::vector<Progress> pages, TimePoint now) {
  // The next training of the same processes may have the same slow rank.
  if (ranks != ranks_) slow_.clear();
  ranks_ = std::move(ranks);
  first_ = std::move(pages);
  began_ = now;
  missed_ = 0;
  is_interrupted_ = false;
  warming_up_ = true;
  windows_.clear();
}

std::vector<StepComparison::Straggler> StepComparison::judge(TimePoint now) {
  std::vector<Straggler> stragglers;
  for (const acc::Section section : kCompared) {
    const std::vector<std::vector<double>> losses_by_rank = losses({section});
    std::vector<double> newest;
    for (const std::vector<double>& windows : losses_by_rank) newest.push_back(median_of_newest(windows));
    const double min_loss = threshold(losses_by_rank, newest);
    std::optional<std::vector<std::vector<double>>> waits;
    for (std::size_t i = 0; i < ranks_.size(); ++i) {
      const std::pair key(ranks_[i], section);
      if (newest[i] < kMinLoss / 2) slow_.erase(key);
      if (newest[i] < min_loss || !all_above(losses_by_rank[i], min_loss / 2) || slow_.contains(key))
        continue;
      if (!waits) waits = losses(waits_beside(section));
      if (-median_of_newest((*waits)[i]) < kWaitPart * newest[i]) continue;
      slow_.insert(key);
      const auto last_report = report_times_.find(key);
      if (last_report != report_times_.end() && now - last_report->second < kMinPause) continue;
      report_times_.insert_or_assign(key, now);
      stragglers.push_back({.rank = ranks_[i], .slow = describe(i, section, now)});
      if (ranks_.size() == 2) stragglers.back().other = ranks_[1 - i];
    }
  }
  return stragglers;
}

SlowSection StepComparison::describe(std::size_t index, acc::Section section, TimePoint now) const {
  const auto judged = windows_.end() - kJudgedWindows;
  std::vector<double> spent, reference, step;
  for (auto window = judged; window != windows_.end(); ++window) {
    std::vector<double> values, steps;
    for (const Times& times : window->ranks) {
      values.push_back(times[index_of(section)]);
      steps.push_back(step_of(times));
    }
    spent.push_back(values[index]);
    reference.push_back(references_of(values)[index]);
    step.push_back(median(std::move(steps)));
  }
  return {.section = section,
          .spent = duration_of(median(std::move(spent))),
          .reference = duration_of(median(std::move(reference))),
          .step = duration_of(median(std::move(step))),
          .duration = std::chrono::duration_cast<std::chrono::milliseconds>(now - judged->began)};
}

// For each rank, by how much of a step it takes longer in these sections than the others.
std::vector<double> StepComparison::losses(const Window& window,
                                           const std::vector<acc::Section>& sections) const {
  std::vector<double> times, steps;
  for (const Times& one : window.ranks) {
    times.push_back(sum_of(one, sections));
    steps.push_back(step_of(one));
  }
  const double step = median(std::move(steps));
  std::vector<double> losses(times.size());
  if (step <= 0) return losses;
  const std::vector<double> references = references_of(times);
  for (std::size_t i = 0; i < times.size(); ++i) losses[i] = (times[i] - references[i]) / step;
  return losses;
}

// The same for all windows: [rank][window].
std::vector<std::vector<double>> StepComparison::losses(const std::vector<acc::Section>& sections) const {
  std::vector<std::vector<double>> losses_by_rank(ranks_.size());
  for (const Window& window : windows_) {
    const std::vector<double> of_window = losses(window, sections);
    for (std::size_t i = 0; i < losses_by_rank.size(); ++i) losses_by_rank[i].push_back(of_window[i]);
  }
  return losses_by_rank;
}

}  // namespace acc::launcher
