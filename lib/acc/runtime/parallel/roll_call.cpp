// SPDX-License-Identifier: Apache-2.0
#include "acc/runtime/parallel/roll_call.hpp"

#include <fmt/format.h>

#include <chrono>
#include <torch/csrc/distributed/c10d/Store.hpp>

#include "acc/base/blocked_signals.hpp"
#include "acc/base/text.hpp"

namespace acc {
namespace {

constexpr std::chrono::seconds kBetweenLooks{1};
// Much longer than kBetweenLooks: who is alive has answered by then, on a busy machine as well.
constexpr std::chrono::seconds kPatience{5};

const std::string kCalled = "acc/roll_call";

std::string answer_key(int rank) {
  return fmt::format("acc/roll_call/{}", rank);
}

}  // namespace

RollCall::RollCall(c10::intrusive_ptr<c10d::Store> store, int rank, int size,
                   std::function<std::uint64_t()> calls)
    : store_(std::move(store)), rank_(rank), size_(size), calls_(std::move(calls)) {
  const BlockedSignals blocked;
  thread_ = std::thread([this] { answer_when_called(); });
}

RollCall::~RollCall() {
  {
    const std::scoped_lock lock(mutex_);
    ends_ = true;
  }
  ended_.notify_all();
  thread_.join();
}

void RollCall::set_place(std::string place) {
  const std::scoped_lock lock(mutex_);
  place_ = std::move(place);
}

const std::optional<Roll>& RollCall::call() {
  std::unique_lock lock(mutex_);
  if (!result_) {
    lock.unlock();
    auto result = ask();
    lock.lock();
    result_ = std::move(result);
  }
  return *result_;
}

void RollCall::answer_when_called() try {
  std::unique_lock lock(mutex_);
  while (!ends_) {
    lock.unlock();
    const bool called = store_->check({kCalled});
    if (called) return answer();
    lock.lock();
    ended_.wait_for(lock, kBetweenLooks, [this] { return ends_; });
  }
} catch (const std::exception&) {  // NOLINT: without a store nobody can be told anything
}

// "17 in backward"
void RollCall::answer() {
  std::string place;
  {
    const std::scoped_lock lock(mutex_);
    place = place_;
  }
  store_->set(answer_key(rank_), fmt::format("{} {}", calls_(), place));
}

std::optional<Roll> RollCall::ask() try {
  const std::uint64_t own_calls = calls_();
  answer();
  store_->set(kCalled, "1");
  std::vector<std::string> keys;
  for (int rank = 0; rank < size_; ++rank) keys.push_back(answer_key(rank));
  try {
    store_->wait(keys, kPatience);
  } catch (const std::exception&) {  // NOLINT: not all answered; the keys say who
  }
  Roll roll;
  for (int rank = 0; rank < size_; ++rank) {
    if (!store_->check({keys[static_cast<std::size_t>(rank)]})) {
      roll.absent.push_back(rank);
      continue;
    }
    const std::string text = store_->get_to_str(keys[static_cast<std::size_t>(rank)]);
    const std::size_t blank = text.find(' ');
    const auto calls = parse_integer(text.substr(0, blank));
    if (!calls || blank == std::string::npos || static_cast<std::uint64_t>(*calls) >= own_calls) continue;
    roll.late.push_back({.rank = rank,
                         .calls_behind = own_calls - static_cast<std::uint64_t>(*calls),
                         .place = text.substr(blank + 1)});
  }
  return roll;
} catch (const std::exception&) {
  return std::nullopt;
}

}  // namespace acc
