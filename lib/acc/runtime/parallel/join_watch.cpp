// SPDX-License-Identifier: Apache-2.0
#include "acc/runtime/parallel/join_watch.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cstdio>

#include "acc/base/blocked_signals.hpp"

namespace acc {

std::string joined_key(int rank) {
  return fmt::format("acc/joined/{}", rank);
}

std::string join_notice(const WorkerEnv& worker, std::chrono::seconds waited,
                        const std::optional<std::vector<int>>& joined) {
  std::vector<int> missing;
  for (int rank = 0; rank < worker.world_size; ++rank) {
    if (rank != worker.rank && (!joined || std::ranges::find(*joined, rank) == joined->end()))
      missing.push_back(rank);
  }
  const auto line = [&](std::string_view whom) {
    return fmt::format("acc: rank {} of {} has waited {} s for {} (the store is at {}:{})\n", worker.rank,
                       worker.world_size, waited.count(), whom, worker.master_addr, worker.master_port);
  };
  if (!joined) return line("rank 0, whose store does not answer");
  if (missing.empty()) return "";
  for (const int rank : *joined) {
    if (rank < worker.rank) return "";
  }
  constexpr std::size_t kMaxShown = 16;
  const std::size_t shown = std::min(missing.size(), kMaxShown);
  std::string whom = fmt::format("rank{} {}", missing.size() == 1 ? "" : "s",
                                 fmt::join(missing.begin(), missing.begin() + static_cast<int>(shown), ", "));
  if (missing.size() > shown) whom += fmt::format(" and {} more", missing.size() - shown);
  return line(whom);
}

JoinWatch::JoinWatch(const WorkerEnv& worker, std::function<Store()> open_store)
    : worker_(worker), open_store_(std::move(open_store)) {
  const BlockedSignals blocked;
  thread_ = std::thread([this] { tell_while_waiting(); });
}

JoinWatch::~JoinWatch() {
  {
    const std::scoped_lock lock(mutex_);
    ends_ = true;
  }
  ended_.notify_all();
  thread_.join();
}

std::optional<std::vector<int>> JoinWatch::joined() try {
  if (!store_) store_ = open_store_();
  std::vector<int> ranks;
  for (int rank = 0; rank < worker_.world_size; ++rank) {
    const bool serves = rank == 0 && !worker_.use_agent_store;
    if (serves || store_->check({joined_key(rank)})) ranks.push_back(rank);
  }
  return ranks;
} catch (const std::exception&) {
  store_.reset();
  return std::nullopt;
}

void JoinWatch::tell_while_waiting() {
  std::chrono::seconds waited{0};
  std::unique_lock lock(mutex_);
  while (!ended_.wait_for(lock, kJoinNoticeAfter, [this] { return ends_; })) {
    waited += kJoinNoticeAfter;
    lock.unlock();
    const std::string line = join_notice(worker_, waited, joined());
    std::fwrite(line.data(), 1, line.size(), stderr);
    lock.lock();
  }
}

}  // namespace acc
