// SPDX-License-Identifier: Apache-2.0
#include "progress.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <fstream>
#include <utility>
#include <vector>

#include "acc/base/files.hpp"
#include "acc/base/stat_line.hpp"

namespace acc::selftest {
namespace {

// Word 0 is the claim, followed by pid and step of each rank.
std::size_t word_of(int local_rank) {
  return 1 + 2 * static_cast<std::size_t>(local_rank);
}

}  // namespace

ProgressBoard::ProgressBoard(const std::filesystem::path& file, int ranks) {
  if (file.empty()) return;
  const Descriptor opened(::open(file.c_str(), O_RDWR | O_CLOEXEC));
  const std::size_t bytes = word_of(ranks) * sizeof(std::int32_t);
  if (!opened || ::ftruncate(opened.get(), static_cast<off_t>(bytes)) != 0) return;
  void* mapped = ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, opened.get(), 0);
  if (mapped == MAP_FAILED) return;
  mapped_ = mapped;
  words_ = {static_cast<std::int32_t*>(mapped), word_of(ranks)};
}

ProgressBoard::~ProgressBoard() {
  if (mapped_ != nullptr) ::munmap(mapped_, words_.size_bytes());
}

void ProgressBoard::set_step(int local_rank, int step) {
  const std::size_t word = word_of(local_rank);
  if (word + 1 >= words_.size()) return;
  std::atomic_ref(words_[word]).store(::getpid());
  std::atomic_ref(words_[word + 1]).store(step);
}

std::vector<ProgressBoard::Progress> ProgressBoard::progress() const {
  std::vector<Progress> progress;
  for (std::size_t word = 1; word + 1 < words_.size(); word += 2) {
    progress.push_back(
        {.pid = std::atomic_ref(words_[word]).load(), .step = std::atomic_ref(words_[word + 1]).load()});
  }
  return progress;
}

bool ProgressBoard::claim_report() {
  std::int32_t& claim = words_.empty() ? own_claim_ : words_[0];
  return std::atomic_ref(claim).exchange(1) == 0;
}

namespace {

constexpr char kStopped = 'T';
constexpr char kTraced = 't';
constexpr char kZombie = 'Z';

std::string explain_one(const RankProgress& rank, int furthest) {
  if (rank.pid == 0) return fmt::format("rank {} has not begun", rank.rank);
  const std::string who = fmt::format("rank {} (process {})", rank.rank, rank.pid);
  if (rank.state == 0 || rank.state == kZombie) return who + " is gone";
  if (rank.state == kStopped || rank.state == kTraced) return who + " is stopped";
  return rank.step < furthest ? who + " has not arrived" : "";
}

}  // namespace

char process_state(pid_t pid) {
  std::ifstream file(fmt::format("/proc/{}/stat", pid));
  std::string line;
  std::getline(file, line);
  const auto stat = parse_stat_line(line);
  return stat && !stat->fields.empty() ? stat->fields.front() : '\0';
}

std::string explain_stall(std::span<const RankProgress> ranks, int num_processes) {
  int furthest = 0;
  for (const RankProgress& rank : ranks) furthest = std::max(furthest, rank.step);
  std::vector<std::string> missing;
  for (const RankProgress& rank : ranks) {
    if (std::string text = explain_one(rank, furthest); !text.empty()) missing.push_back(std::move(text));
  }
  if (!missing.empty()) return fmt::format("{}", fmt::join(missing, ", "));
  if (static_cast<int>(ranks.size()) == num_processes) {
    return "all ranks are running and wait: they cannot reach each other through the network";
  }
  return "every rank of this machine is running and waits: one of another machine is missing, or the network "
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
