// SPDX-License-Identifier: Apache-2.0
#include "acc/top/step_rates.hpp"

#include <algorithm>

namespace acc::launcher {
namespace {

using Seconds = ProgressView::Seconds;

// A rank whose step takes so many times as long as the one before stands still.
constexpr double kStandstill = 3;

Seconds spent_in(const ProgressView& progress, const std::string& section) {
  const auto time = progress.spent.find(section);
  return time == progress.spent.end() ? Seconds(0) : time->second;
}

// From the last step alone, where there was none meanwhile.
std::optional<double> rate_of_last_step(const ProgressView& progress) {
  if (!progress.step_time || !progress.since_step || progress.step_time->count() <= 0) return std::nullopt;
  if (*progress.since_step > kStandstill * *progress.step_time) return 0;
  return 1 / progress.step_time->count();
}

// From the end of a step to that of another one: between two readings there may be one step that began long
// before them.
std::optional<double> rate_between(Seconds elapsed, const ProgressView& first, const ProgressView& last) {
  const std::int64_t steps = last.steps - first.steps;
  if (steps <= 0 || !first.since_step || !last.since_step) return std::nullopt;
  const Seconds between_ends = elapsed + *first.since_step - *last.since_step;
  return between_ends.count() > 0 ? std::optional(static_cast<double>(steps) / between_ends.count())
                                  : std::nullopt;
}

double share(Seconds part, Seconds whole) {
  return std::clamp(part / whole, 0.0, 1.0);
}

}  // namespace

void RateWindow::observe(const std::vector<JobUsage>& jobs, TimePoint now) {
  RankMap current_ranks;
  for (const JobUsage& job : jobs) {
    observe(job.job.id, job.job.ranks, now, current_ranks);
    for (const NodeView& node : job.other_nodes.nodes)
      observe(job.job.id, node.ranks, job.other_nodes.time - node.age.value_or(std::chrono::milliseconds(0)),
              current_ranks);
  }
  ranks_ = std::move(current_ranks);
}

void RateWindow::observe(const std::string& job, const std::vector<RankView>& ranks, TimePoint time,
                         RankMap& current_ranks) {
  for (const RankView& rank : ranks) {
    if (!rank.progress) continue;
    const RankKey key(job, rank.rank);
    RankReadings& readings = current_ranks[key];
    if (const auto entry = ranks_.find(key); entry != ranks_.end()) readings = std::move(entry->second);
    add(readings, rank, time);
  }
}

void RateWindow::add(RankReadings& rank, const RankView& view, TimePoint now) const {
  const bool begins = rank.pid != view.pid ||
                      (!rank.readings.empty() && view.progress->steps < rank.readings.back().progress.steps);
  if (begins) rank = {.pid = view.pid};
  // Of another node that has not reported since.
  if (!rank.readings.empty() && rank.readings.back().progress == *view.progress) return;
  rank.readings.push_back({now, *view.progress});
  while (rank.readings.size() > 2 && now - rank.readings[1].time >= length_) rank.readings.pop_front();
}

StepRates RateWindow::rates_of(const std::string& job, int rank) const {
  const auto entry = ranks_.find({job, rank});
  if (entry == ranks_.end()) return {};
  const Reading& first = entry->second.readings.front();
  const Reading& last = entry->second.readings.back();
  StepRates rates;
  const Seconds elapsed = last.time - first.time;
  rates.steps_per_second = rate_between(elapsed, first.progress, last.progress);
  if (!rates.steps_per_second) rates.steps_per_second = rate_of_last_step(last.progress);
  if (elapsed.count() <= 0) return rates;
  const auto share_of = [&](const char* section) {
    return share(spent_in(last.progress, section) - spent_in(first.progress, section), elapsed);
  };
  rates.data_share = share_of("data");
  rates.communication_share = share_of("communication");
  return rates;
}

}  // namespace acc::launcher
