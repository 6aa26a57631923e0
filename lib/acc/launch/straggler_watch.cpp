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
/// Who has said nothing for so many looks is suspended or cut off: its ranks are not compared.
constexpr int kMaxSilentLooks = 5;
/// The messages that the node that leads gets in a period, at most.
constexpr int kMaxMessages = 20;

int periods_between_messages(int nodes) {
  return (nodes + kMaxMessages - 1) / kMaxMessages;
}

}  // namespace

StragglerWatch::StragglerWatch(boost::asio::io_context& loop, int workers, StragglerWatchParts parts,
                               std::chrono::milliseconds period)
    : workers_(workers), parts_(std::move(parts)), period_(period), timer_(loop) {}

void StragglerWatch::report(const Event& event) {
  if (const auto* attempt = std::get_if<AttemptStarted>(&event)) begin(attempt->round);
  if (workers_ < 2 && round_.num_machines < 2) return;
  // When all workers have been started: a timer takes a system call.
  const auto* started = std::get_if<WorkerStarted>(&event);
  const bool begins = started != nullptr && started->local_rank == workers_ - 1;
  if (begins || std::holds_alternative<Resumed>(event)) {
    watching_ = true;
    pause_ = period_;
    wait();
  }
  if (std::holds_alternative<Suspended>(event)) on_suspended();
  const bool ends = std::holds_alternative<Stopping>(event) || std::holds_alternative<Restarting>(event) ||
                    std::holds_alternative<Suspended>(event) || std::holds_alternative<Finished>(event);
  if (ends) {
    watching_ = false;
    timer_.cancel();
  }
}

void StragglerWatch::begin(const Round& round) {
  round_ = round;
  comparison_ = std::make_shared<StepComparison>();
  is_followed_ = false;
  nodes_.clear();
  slow_.clear();
}

// The time until it goes on is no rank's.
void StragglerWatch::on_suspended() {
  comparison_->interrupt();
  if (is_followed_) parts_.tell_progress({});
}

void StragglerWatch::mark(JobView& job) const {
  for (RankView& rank : job.ranks) {
    const auto slow = std::ranges::find(slow_, rank.rank, &SlowRank::rank);
    if (slow != slow_.end() && rank.progress) rank.progress->slow_in = name_of(slow->section);
  }
}

void StragglerWatch::wait() {
  timer_.expires_after(pause_);
  timer_.async_wait([this, alive = std::weak_ptr(comparison_)](boost::system::error_code error) {
    // The handler of an expired timer cannot be cancelled any more.
    if (error || alive.expired() || !watching_) return;
    look();
    wait();
  });
}

void StragglerWatch::look() {
  for (auto& [id, node] : nodes_) ++node.looks;
  const std::vector<RankProgress> local_ranks = read_pages();
  is_followed_ = is_followed_ || !local_ranks.empty();
  const bool is_told = is_followed_ && parts_.tell_progress(local_ranks);
  const bool is_of_several = is_told || !nodes_.empty();
  const auto period = period_ * (is_of_several ? periods_between_messages(round_.num_machines) : 1);
  pause_ = !local_ranks.empty() || !nodes_.empty() ? period : std::min(2 * pause_, kLongestPause * period);
  if (!is_told) compare(local_ranks);
}

std::vector<RankProgress> StragglerWatch::read_pages() const {
  std::vector<RankProgress> ranks;
  for (const RankView& rank : parts_.job().ranks) {
    const auto page = rank.ended.empty() ? parts_.progress(rank.local_rank) : std::nullopt;
    if (page) ranks.push_back({rank.rank, *page});
  }
  return ranks;
}

std::vector<std::optional<Progress>> StragglerWatch::all_pages(
    const std::vector<RankProgress>& local_ranks) const {
  std::vector<std::optional<Progress>> pages(static_cast<std::size_t>(round_.world_size));
  const auto add = [&](const std::vector<RankProgress>& ranks) {
    for (const auto& [rank, progress] : ranks)
      if (rank >= 0 && rank < round_.world_size && !pages[static_cast<std::size_t>(rank)])
        pages[static_cast<std::size_t>(rank)] = progress;
  };
  add(local_ranks);
  for (const auto& [id, node] : nodes_)
    if (node.looks <= kMaxSilentLooks) add(node.progress.ranks);
  return pages;
}

void StragglerWatch::compare(const std::vector<RankProgress>& local_ranks) {
  for (const auto& [index, other, slow] :
       comparison_->observe(all_pages(local_ranks), std::chrono::steady_clock::now())) {
    const int rank = static_cast<int>(index);
    Straggler straggler{.attempt = parts_.job().attempt, .rank = rank, .slow = slow, .host = host_of(rank)};
    if (other) straggler.other = static_cast<int>(*other);
    parts_.send(std::move(straggler));
  }
  const std::vector<SlowRank> slow = comparison_->slow();
  if (std::exchange(slow_, slow) != slow && !nodes_.empty()) parts_.tell_slow(slow);
}

std::string StragglerWatch::host_of(int rank) const {
  if (nodes_.empty()) return {};
  const std::vector<RankView>& local_ranks = parts_.job().ranks;
  if (std::ranges::find(local_ranks, rank, &RankView::rank) != local_ranks.end()) return parts_.host;
  for (const auto& [id, node] : nodes_)
    if (std::ranges::find(node.progress.ranks, rank, &RankProgress::rank) != node.progress.ranks.end())
      return node.progress.host;
  return parts_.host;
}

}  // namespace acc::launcher
