// SPDX-License-Identifier: Apache-2.0
#include "acc/runtime/comm/missing_peers.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <numeric>
#include <torch/csrc/distributed/c10d/Store.hpp>
#include <torch/csrc/distributed/c10d/Work.hpp>

#include "acc/base/blocked_signals.hpp"
#include "acc/base/text.hpp"

namespace acc::detail {

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
  if (!joined) {
    return line(worker.use_agent_store ? "the launcher's store, which does not answer"
                                       : "rank 0, whose store does not answer");
  }
  return missing.empty() ? "" : line(name_ranks(missing));
}

std::string JoinNotices::next(c10d::Store& store, std::chrono::seconds waited) {
  if (!writes_) writes_ = store.add("acc/join_notices", 1) == 1;
  if (!*writes_) return "";
  std::vector<int> joined;
  for (int rank = 0; rank < worker_.world_size; ++rank) {
    const bool serves = rank == 0 && !worker_.use_agent_store;
    if (serves || store.check({joined_key(rank)})) joined.push_back(rank);
  }
  return join_notice(worker_, waited, joined);
}

std::string JoinNotices::without_store(std::chrono::seconds waited) const {
  return join_notice(worker_, waited, std::nullopt);
}

JoinWatch::JoinWatch(const WorkerEnv& worker, std::function<Store()> open_store)
    : notices_(worker), open_store_(std::move(open_store)) {
  const BlockedSignals blocked;
  thread_ = std::thread([this] { write_notices(); });
}

JoinWatch::~JoinWatch() {
  {
    const std::scoped_lock lock(mutex_);
    ends_ = true;
  }
  ended_.notify_all();
  thread_.join();
}

std::string JoinWatch::notice(std::chrono::seconds waited) try {
  if (!store_) store_ = open_store_();
  return notices_.next(*store_, waited);
} catch (const std::exception&) {
  store_.reset();
  return notices_.without_store(waited);
}

void JoinWatch::write_notices() {
  std::chrono::seconds waited{0};
  std::unique_lock lock(mutex_);
  while (!ended_.wait_for(lock, kJoinNoticeAfter, [this] { return ends_; })) {
    waited += kJoinNoticeAfter;
    lock.unlock();
    const std::string line = notice(waited);
    std::fwrite(line.data(), 1, line.size(), stderr);
    lock.lock();
  }
}

namespace {

constexpr std::chrono::seconds kPollInterval{1};
// Much longer than kPollInterval, so that all running processes answer even on a busy machine.
constexpr std::chrono::seconds kAnswerTimeout{5};

// One request is made when a collective has failed; its answers stay, also those of processes that end.
constexpr const char* kRequestKey = "acc/peer_check";
// The number of questions where the processes are, which are answered each.
constexpr const char* kQuestionsKey = "acc/where";

std::string answer_key(int rank) {
  return fmt::format("acc/peer_check/{}", rank);
}
std::string answer_key(std::int64_t question, int rank) {
  return fmt::format("acc/where/{}/{}", question, rank);
}

// Whether the work is over, also as a failure, after `time` in which this process runs: a process that is
// suspended meanwhile loses one of many short waits.
bool is_over_within(c10d::Work& work, std::chrono::milliseconds time) {
  constexpr std::chrono::milliseconds kShortWait{200};
  for (; time.count() > 0; time -= kShortWait) {
    try {
      work.wait(kShortWait);
      return true;
    } catch (const std::exception&) {
      if (work.isCompleted()) return true;
    }
  }
  return false;
}

}  // namespace

bool others_are_elsewhere(const PeerPosition& self, const std::map<int, PeerPosition>& peers, int size) {
  const std::string kind = self.phase.substr(0, self.phase.find(','));
  return peers.size() == static_cast<std::size_t>(size) && std::ranges::any_of(peers, [&](const auto& other) {
           return other.second.calls >= self.calls && !other.second.phase.starts_with(kind);
         });
}

void wait_or_find_others_elsewhere(c10d::Work& work, const std::function<bool()>& others_are_elsewhere) {
  for (std::chrono::seconds patience{3}; !is_over_within(work, patience); patience *= 2) {
    // What had arrived while this process was suspended gets its turn before this is believed.
    if (others_are_elsewhere() && !is_over_within(work, std::chrono::seconds(1))) throw DifferentCalls();
  }
}

PeerCheck::PeerCheck(c10::intrusive_ptr<c10d::Store> store, int rank, int size,
                     std::function<std::uint64_t()> calls)
    : store_(std::move(store)), rank_(rank), size_(size), calls_(std::move(calls)) {
  // For the end of this process, or of its group: whoever asks then need not wait.
  store_->set(std::string(kAtEnd) + answer_key(rank), "ended");
  const BlockedSignals blocked;
  thread_ = std::thread([this] { answer_when_asked(); });
}

PeerCheck::~PeerCheck() {
  {
    const std::scoped_lock lock(mutex_);
    ends_ = true;
  }
  ended_.notify_all();
  thread_.join();
}

void PeerCheck::set_phase(std::string phase) {
  const std::scoped_lock lock(mutex_);
  phase_ = std::move(phase);
}

const std::optional<PeerReport>& PeerCheck::report() {
  std::unique_lock lock(mutex_);
  if (!result_) {
    lock.unlock();
    auto result = ask();
    lock.lock();
    result_ = std::move(result);
  }
  return *result_;
}

PeerPosition PeerCheck::own_position() {
  const std::scoped_lock lock(mutex_);
  return {.calls = calls_(), .phase = phase_};
}

void PeerCheck::answer_when_asked() try {
  std::unique_lock lock(mutex_);
  while (!ends_) {
    lock.unlock();
    if (store_->check({kRequestKey})) return answer(answer_key(rank_));
    const std::int64_t questions = store_->add(kQuestionsKey, 0);
    if (questions > answered_) answer(answer_key(questions, rank_));
    lock.lock();
    answered_ = questions;
    ended_.wait_for(lock, kPollInterval, [this] { return ends_; });
  }
} catch (const std::exception&) {  // NOLINT: without a store there is nothing to answer
}

// "17 in backward"
void PeerCheck::answer(const std::string& key) {
  const auto [calls, phase] = own_position();
  store_->set(key, fmt::format("{} {}", calls, phase));
}

std::map<int, PeerPosition> PeerCheck::wait_for_answers(const std::function<std::string(int rank)>& key) {
  std::vector<std::string> keys;
  for (int rank = 0; rank < size_; ++rank) keys.push_back(key(rank));
  std::vector<int> ranks(keys.size());
  std::iota(ranks.begin(), ranks.end(), 0);
  try {
    store_->wait(keys, kAnswerTimeout);
  } catch (const std::exception&) {  // NOLINT: not all answered; the keys show which
    std::erase_if(ranks, [&](int rank) { return !store_->check({key(rank)}); });
    keys.clear();
    for (const int rank : ranks) keys.push_back(key(rank));
  }
  // One question for all answers: each of thousands of processes asks when a collective has failed.
  const std::vector<std::vector<std::uint8_t>> answers = store_->multiGet(keys);
  std::map<int, PeerPosition> positions;
  for (std::size_t i = 0; i < ranks.size(); ++i) {
    const std::string text(answers.at(i).begin(), answers.at(i).end());
    const std::size_t blank = text.find(' ');
    const auto calls = parse_integer(text.substr(0, blank));
    if (calls && blank != std::string::npos)
      positions[ranks[i]] = {.calls = static_cast<std::uint64_t>(*calls), .phase = text.substr(blank + 1)};
  }
  return positions;
}

std::map<int, PeerPosition> PeerCheck::positions() try {
  std::int64_t question = store_->add(kQuestionsKey, 0);
  {
    // One that this process has not answered yet is as good as a new one.
    const std::scoped_lock lock(mutex_);
    if (question <= answered_) question = store_->add(kQuestionsKey, 1);
  }
  answer(answer_key(question, rank_));
  return wait_for_answers([question](int rank) { return answer_key(question, rank); });
} catch (const std::exception&) {
  return {};
}

std::optional<PeerReport> PeerCheck::ask() try {
  const std::uint64_t own_calls = calls_();
  answer(answer_key(rank_));
  store_->set(kRequestKey, "1");
  const std::map<int, PeerPosition> positions = wait_for_answers([](int rank) { return answer_key(rank); });
  PeerReport peers;
  for (int rank = 0; rank < size_; ++rank) {
    const auto answer = positions.find(rank);
    if (answer == positions.end()) {
      peers.absent.push_back(rank);
      continue;
    }
    const auto& [calls, phase] = answer->second;
    peers.phases[rank] = phase;
    if (calls < own_calls)
      peers.late.push_back({.rank = rank, .calls_behind = own_calls - calls, .phase = phase});
  }
  return peers;
} catch (const std::exception&) {
  return std::nullopt;
}

}  // namespace acc::detail
