// SPDX-License-Identifier: Apache-2.0
#include "acc/launch/progress_history.hpp"

#include <algorithm>
#include <utility>

namespace acc::launcher {
namespace {

/// While no rank has ended a step, in periods.
constexpr int kMaxPause = 16;

std::chrono::nanoseconds spent_in(const Progress& page, acc::Section section, std::chrono::nanoseconds now) {
  const auto present = page.section == section ? now - page.section_began : std::chrono::nanoseconds(0);
  return page.spent[static_cast<std::size_t>(section)] + std::max(present, std::chrono::nanoseconds(0));
}

}  // namespace

void RankHistory::add(TimePoint now, const Progress& page) {
  constexpr auto kMinute = std::chrono::minutes(1);
  const auto moment = progress_now();
  const Sample sample = {.time = now,
                         .steps = page.steps,
                         .data = spent_in(page, acc::Section::data, moment),
                         .communication = spent_in(page, acc::Section::communication, moment),
                         .since_step = std::max(moment - page.step_ended, std::chrono::nanoseconds(0)),
                         .process = page.process_start};
  seconds_.push_back(sample);
  if (minutes_.empty() || now - minutes_.back().time >= kMinute) minutes_.push_back(sample);
}

StepHistory RankHistory::view(TimePoint now) const {
  return {.seconds = samples_of(seconds_, now), .minutes = samples_of(minutes_, now)};
}

std::vector<StepHistory::Sample> RankHistory::samples_of(const Ring& ring, TimePoint now) {
  std::vector<StepHistory::Sample> samples;
  samples.reserve(ring.size());
  for (const Sample& sample : ring)
    samples.push_back({.age = now - sample.time,
                       .steps = sample.steps,
                       .data = sample.data,
                       .communication = sample.communication,
                       .since_step = sample.since_step,
                       .process = sample.process});
  return samples;
}

ProgressHistory::ProgressHistory(boost::asio::io_context& loop, int workers, ProgressHistoryParts parts,
                                 std::chrono::milliseconds period)
    : workers_(workers), parts_(std::move(parts)), period_(period), timer_(loop) {}

void ProgressHistory::report(const Event& event) {
  if (const auto* attempt = std::get_if<AttemptStarted>(&event)) {
    const Round before = std::exchange(round_, attempt->round);
    if (before.first_rank != round_.first_rank || before.world_size != round_.world_size) ranks_.clear();
  }
  // When all workers have been started: a timer takes a system call.
  const auto* started = std::get_if<WorkerStarted>(&event);
  const bool begins = started != nullptr && started->local_rank == workers_ - 1;
  if (begins || std::holds_alternative<Resumed>(event)) begin();
  const bool ends = std::holds_alternative<Suspended>(event) || std::holds_alternative<Restarting>(event) ||
                    std::holds_alternative<Finished>(event);
  if (ends) end();
}

std::optional<StepHistory> ProgressHistory::of(int rank) const {
  const auto history = ranks_.find(rank);
  if (history == ranks_.end()) return std::nullopt;
  return history->second.view(std::chrono::steady_clock::now());
}

void ProgressHistory::begin() {
  watching_ = std::make_shared<bool>(true);
  pause_ = period_;
  wait();
}

void ProgressHistory::end() {
  watching_.reset();
  timer_.cancel();
}

void ProgressHistory::wait() {
  timer_.expires_after(pause_);
  timer_.async_wait([this, alive = std::weak_ptr(watching_)](boost::system::error_code error) {
    if (error || alive.expired()) return;
    look();
    wait();
  });
}

void ProgressHistory::look() {
  bool steps = false;
  for (const RankView& rank : parts_.job().ranks) {
    const auto page = rank.ended.empty() ? parts_.progress(rank.local_rank) : std::nullopt;
    if (!page || page->steps == 0) continue;
    ranks_[rank.rank].add(std::chrono::steady_clock::now(), *page);
    steps = true;
  }
  pause_ = steps ? period_ : std::min(2 * pause_, kMaxPause * period_);
}

}  // namespace acc::launcher
