// SPDX-License-Identifier: Apache-2.0
#include "acc/launch/progress_watch.hpp"

#include <algorithm>
#include <utility>

namespace acc::launcher {
namespace {

/// Between two looks for the first steps, as a part of the period.
constexpr int kLooks = 60;

}  // namespace

ProgressWatch::ProgressWatch(boost::asio::io_context& loop, ProgressWatchParts parts,
                             std::chrono::milliseconds period)
    : parts_(std::move(parts)), period_(period), timer_(loop) {}

void ProgressWatch::report(const Event& event) {
  if (std::holds_alternative<AttemptStarted>(event)) {
    stepped_ = 0;
    has_begun_ = false;
    hung_.reset();
  }
  if (std::holds_alternative<HangFound>(event) && watching_) {
    hung_ = progress_now();
    wait();
  }
  if (std::holds_alternative<AttemptStarted>(event) || std::holds_alternative<Resumed>(event)) begin();
  if (std::holds_alternative<Suspended>(event) || std::holds_alternative<Restarting>(event) ||
      std::holds_alternative<Finished>(event))
    end();
  if (const auto* finished = std::get_if<WorkerFinished>(&event)) note_end(finished->local_rank);
}

void ProgressWatch::begin() {
  watching_ = std::make_shared<bool>(true);
  due_ = std::chrono::steady_clock::now() + period_;
  wait();
}

void ProgressWatch::end() {
  watching_.reset();
  timer_.cancel();
}

void ProgressWatch::wait() {
  const TimePoint soon = std::chrono::steady_clock::now() + period_ / kLooks;
  timer_.expires_at(waits_for_step() ? std::min(due_, soon) : due_);
  timer_.async_wait([this, alive = std::weak_ptr(watching_)](boost::system::error_code error) {
    if (error || alive.expired()) return;
    look();
    wait();
  });
}

void ProgressWatch::look() {
  const TimePoint now = std::chrono::steady_clock::now();
  const std::size_t before = std::exchange(stepped_, stepped_since({}));
  const bool goes_on = hung_ && stepped_since(*hung_) > 0;
  if (goes_on) hung_.reset();
  if (stepped_ <= before && !goes_on && now < due_) return;
  has_begun_ = has_begun_ || now >= due_;
  note_running();
  if (now >= due_) due_ = now + period_;
}

bool ProgressWatch::waits_for_step() const {
  const std::size_t ranks = parts_.job().ranks.size();
  // An attempt begins before its workers are started.
  return hung_ || (!has_begun_ && (ranks == 0 || stepped_ < ranks));
}

std::size_t ProgressWatch::stepped_since(std::chrono::nanoseconds moment) const {
  return static_cast<std::size_t>(std::ranges::count_if(parts_.job().ranks, [&](const RankView& rank) {
    const auto page = rank.ended.empty() ? parts_.progress(rank.local_rank) : std::nullopt;
    return page && page->step_ended > moment;
  }));
}

void ProgressWatch::note_running() {
  const ProcessTable processes = parts_.processes();
  ProgressNoted event;
  for (const RankView& view : parts_.job().ranks) {
    if (!view.ended.empty()) continue;
    ProgressNoted::Rank& rank = event.ranks.emplace_back(describe(view));
    const auto tree = processes.tree(view.own_pid());
    if (tree.empty()) continue;
    rank.cpu_time.emplace();
    rank.memory_bytes.emplace();
    for (const ProcessStat* process : tree) {
      *rank.cpu_time += process->cpu_time;
      *rank.memory_bytes += process->resident_bytes;
    }
  }
  if (!event.ranks.empty()) parts_.note(event);
}

void ProgressWatch::note_end(int local_rank) {
  const std::vector<RankView>& ranks = parts_.job().ranks;
  const auto view = std::ranges::find(ranks, local_rank, &RankView::local_rank);
  if (view == ranks.end()) return;
  ProgressNoted::Rank rank = describe(*view);
  if (rank.progress) parts_.note({.ranks = {std::move(rank)}});
}

ProgressNoted::Rank ProgressWatch::describe(const RankView& view) const {
  ProgressNoted::Rank rank = {.rank = view.rank};
  const auto page = parts_.progress(view.local_rank);
  if (!page) return rank;
  rank.progress = view_of(*page, progress_now());
  rank.counts_over_restarts = page->step_scope == StepScope::training;
  return rank;
}

}  // namespace acc::launcher
