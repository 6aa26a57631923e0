// SPDX-License-Identifier: Apache-2.0
#include "acc/launch/straggler_watch.hpp"

#include <algorithm>
#include <memory>
#include <utility>
#include <vector>

namespace acc::launcher {
namespace {

/// While no rank says anything.
constexpr int kLongestPause = 16;

}  // namespace

StragglerWatch::StragglerWatch(boost::asio::io_context& loop, int workers, StragglerWatchParts parts,
                               std::chrono::milliseconds period)
    : workers_(workers), parts_(std::move(parts)), period_(period), timer_(loop) {}

void StragglerWatch::report(const Event& event) {
  if (workers_ < 2) return;
  if (std::holds_alternative<AttemptStarted>(event)) comparison_ = std::make_shared<StepComparison>();
  // When all workers have been started: a timer takes a system call.
  const auto* started = std::get_if<WorkerStarted>(&event);
  const bool begins = started != nullptr && started->local_rank == workers_ - 1;
  if (begins || std::holds_alternative<Resumed>(event)) {
    watching_ = true;
    pause_ = period_;
    wait();
  }
  const bool ends = std::holds_alternative<Stopping>(event) || std::holds_alternative<Restarting>(event) ||
                    std::holds_alternative<Suspended>(event) || std::holds_alternative<Finished>(event);
  if (ends) {
    watching_ = false;
    timer_.cancel();
  }
}

void StragglerWatch::mark(JobView& job) const {
  for (std::size_t i = 0; i < job.ranks.size(); ++i) {
    const auto section = comparison_->slow_in(i);
    if (section && job.ranks[i].progress) job.ranks[i].progress->slow_in = name_of(*section);
  }
}

void StragglerWatch::wait() {
  timer_.expires_after(pause_);
  timer_.async_wait([this, alive = std::weak_ptr(comparison_)](boost::system::error_code error) {
    // The handler of an expired timer cannot be cancelled any more.
    if (error || alive.expired() || !watching_) return;
    compare();
    wait();
  });
}

void StragglerWatch::compare() {
  const JobView& job = parts_.job();
  std::vector<std::optional<Progress>> pages;
  for (const RankView& rank : job.ranks)
    pages.push_back(rank.ended.empty() ? parts_.progress(rank.local_rank) : std::nullopt);
  const bool any = std::ranges::any_of(pages, [](const auto& page) { return page.has_value(); });
  pause_ = any ? period_ : std::min(2 * pause_, kLongestPause * period_);
  for (const auto& [index, other, slow] : comparison_->observe(pages, std::chrono::steady_clock::now())) {
    Straggler found{.attempt = job.attempt, .rank = job.ranks[index].rank, .slow = slow};
    if (other) found.other = job.ranks[*other].rank;
    parts_.send(std::move(found));
  }
}

}  // namespace acc::launcher
