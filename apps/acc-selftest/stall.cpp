// SPDX-License-Identifier: Apache-2.0
#include "stall.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <fstream>
#include <utility>
#include <vector>

namespace acc::selftest {
namespace {

constexpr char kStopped = 'T';
constexpr char kTraced = 't';
constexpr char kZombie = 'Z';

std::string explain_one(const Standing& rank, int furthest) {
  if (rank.pid == 0) return fmt::format("rank {} has not begun", rank.rank);
  const std::string who = fmt::format("rank {} (process {})", rank.rank, rank.pid);
  if (rank.state == 0 || rank.state == kZombie) return who + " is gone";
  if (rank.state == kStopped || rank.state == kTraced) return who + " is stopped";
  return rank.step < furthest ? who + " does not come" : "";
}

}  // namespace

char process_state(pid_t pid) {
  std::ifstream file(fmt::format("/proc/{}/stat", pid));
  std::string line;
  std::getline(file, line);
  // The name in brackets may hold anything, also brackets.
  const std::size_t end = line.rfind(") ");
  return end == std::string::npos || end + 2 >= line.size() ? '\0' : line[end + 2];
}

std::string explain_stall(std::span<const Standing> ranks, int num_processes) {
  int furthest = 0;
  for (const Standing& rank : ranks) furthest = std::max(furthest, rank.step);
  std::vector<std::string> missing;
  for (const Standing& rank : ranks) {
    if (std::string text = explain_one(rank, furthest); !text.empty()) missing.push_back(std::move(text));
  }
  if (!missing.empty()) return fmt::format("{}", fmt::join(missing, ", "));
  if (static_cast<int>(ranks.size()) == num_processes) {
    return "all ranks are there and wait: they do not reach each other through the network";
  }
  return "every rank of this machine is there and waits: one of another machine is missing, or the network "
         "between them is broken";
}

Watchdog::Watchdog(std::chrono::milliseconds limit, std::function<void()> expired)
    : limit_(limit),
      expired_(std::move(expired)),
      deadline_(std::chrono::steady_clock::now() + limit),
      thread_([this] { watch(); }) {}

Watchdog::~Watchdog() {
  {
    const std::lock_guard lock(mutex_);
    over_ = true;
  }
  changed_.notify_one();
  thread_.join();
}

void Watchdog::restart() {
  const std::lock_guard lock(mutex_);
  deadline_ = std::chrono::steady_clock::now() + limit_;
}

void Watchdog::watch() {
  std::unique_lock lock(mutex_);
  while (!over_ && std::chrono::steady_clock::now() < deadline_) {
    const auto deadline = deadline_;
    changed_.wait_until(lock, deadline, [this] { return over_; });
  }
  if (over_) return;
  lock.unlock();
  expired_();
}

}  // namespace acc::selftest
