// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <csignal>
#include <cstdint>
#include <deque>
#include <functional>
#include <list>
#include <map>
#include <optional>
#include <set>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "acc/base/error.hpp"
#include "acc/launch/processes.hpp"

namespace acc::test {

using namespace launcher;

using Signals = std::vector<std::pair<int, int>>;

/// A fake without processes: workers do what the test prescribes, and time passes only in next().
class FakeProcesses : public Processes {
 public:
  /// The worker `local_rank` of each attempt ends with `status`, in the order of these calls.
  void will_end(int local_rank, ExitStatus status, std::chrono::milliseconds after = {}) {
    ends_.push_back({local_rank, status, after});
  }
  /// The same in one attempt only.
  void will_end_in(int attempt, int local_rank, ExitStatus status) {
    ends_.push_back({local_rank, status, {}, attempt});
  }
  /// The worker does not end on a signal other than SIGKILL.
  void ignores_signals(int local_rank) { deaf_.insert(local_rank); }
  /// The worker ends this long after a SIGKILL, and waits in the kernel before.
  void is_stuck(int local_rank, std::chrono::milliseconds after) { stuck_ = {local_rank, after}; }
  /// The worker handles no signal that is only passed on, before this time.
  void has_no_handler(int local_rank, std::chrono::milliseconds before = std::chrono::hours(24)) {
    without_handler_[local_rank] = before;
  }
  void signal_arrives(int signal, std::chrono::milliseconds after = {},
                      Receiver receiver = Receiver::supervisor) {
    outside_.push_back({start_ + after, SignalArrived{signal, receiver}});
  }
  void supervisor_is_lost(std::chrono::milliseconds after = {}) {
    outside_.push_back({start_ + after, SupervisorLost{}});
  }
  void hangs(int attempt, std::chrono::milliseconds after = {}) {
    outside_.push_back({start_ + after, Hung{attempt, std::chrono::seconds(60), "rank 0: asleep\n"}});
    outside_.push_back({start_ + after, HangStacks{attempt, "  native stacks\n"}});
    outside_.push_back({start_ + after, HangExamined{attempt}});
  }
  void finds(AgentEvent event, std::chrono::milliseconds after) {
    outside_.push_back({start_ + after, std::move(event)});
  }
  void other_nodes_send(NodeEvent event, std::chrono::milliseconds after) {
    outside_.push_back({start_ + after, std::move(event)});
  }
  /// The next prepare() takes this long, and comes to this.
  void will_prepare(std::chrono::milliseconds takes, std::string refusal = {}) {
    preparation_ = {takes, std::move(refusal)};
  }
  /// What is being flushed comes to this; a later call replaces it.
  void will_flush(FlushResult result, std::chrono::milliseconds takes) {
    outside_.remove_if([](const auto& entry) { return std::holds_alternative<FlushEnded>(entry.second); });
    outside_.push_back({now_ + takes, FlushEnded{std::move(result)}});
  }
  void stop_is_asked(bool now, std::chrono::milliseconds after = {}) {
    outside_.push_back({start_ + after, SignalArrived{.signal = SIGTERM, .now = now, .of_job = true}});
  }
  /// Workers leave this many orphans; if `deaf`, they end on SIGKILL only.
  void will_leave_orphans(int count, bool deaf = false) {
    leaves_ = count;
    orphans_deaf_ = deaf;
  }
  void cannot_start(int local_rank) { broken_ = local_rank; }
  void writes_to_stderr(int local_rank, std::string text) { stderr_[local_rank] = std::move(text); }
  void has_slow_reader() { slow_reader_ = true; }
  void shows_on_terminal(int local_rank) { shown_.insert(local_rank); }
  void loses_output(std::string text) { lost_ = std::move(text); }
  void reader_is_lost(std::chrono::milliseconds after = {}) {
    outside_.push_back({start_ + after, ReaderLost{}});
  }

  /// The signals of workers, in order: local rank and signal.
  const Signals& signals() const { return signals_; }
  /// The signals of orphans.
  const std::vector<int>& orphan_signals() const { return orphan_signals_; }
  const std::vector<WorkerStart>& started() const { return started_; }
  std::size_t running() const { return running_.size(); }
  std::chrono::milliseconds elapsed() const {
    return std::chrono::duration_cast<std::chrono::milliseconds>(now_ - start_);
  }
  /// Called before each start, to check the state at that time.
  std::function<void()> before_start = [] {};
  /// What a slow reader has not read.
  std::function<std::uint64_t()> unread = [] { return 5; };

  bool prepare() override {
    if (!preparation_) return false;
    outside_.push_back({now_ + preparation_->first, Prepared{preparation_->second}});
    preparation_.reset();
    return true;
  }

  StartedWorker start(WorkerStart worker) override {
    before_start();
    if (worker.local_rank == broken_)
      throw Error({.what = "cannot be started", .where = worker.program.string()});
    if (worker.local_rank == 0) {
      ++attempt_;
      attempt_began_ = now_;
      orphans_ = leaves_;
    }
    const int local_rank = worker.local_rank;
    started_.push_back(std::move(worker));
    running_.insert(local_rank);
    if (local_rank == 0) planned_ = ends_;
    return {.pid = 1000 + local_rank};
  }

  void signal(int local_rank, int signal) override {
    signals_.emplace_back(local_rank, signal);
    if (signal == SIGKILL && stuck_ && stuck_->first == local_rank && running_.contains(local_rank)) {
      outside_.push_back({now_ + stuck_->second, end(local_rank, Signaled{signal})});
      return;
    }
    const bool ends = signal == SIGKILL || (!deaf_.contains(local_rank) && ends_job(signal));
    if (ends && running_.contains(local_rank)) queue_.push_back(end(local_rank, Signaled{signal}));
  }

  bool signal_if_handled(int local_rank, int signal) override {
    const auto begins = without_handler_.find(local_rank);
    if (begins != without_handler_.end() && elapsed() < begins->second) return false;
    signals_.emplace_back(local_rank, signal);
    return true;
  }

  bool signal_orphans(int signal) override {
    std::erase_if(queue_, [](const AgentEvent& one) { return std::holds_alternative<OrphansGone>(one); });
    if (orphans_ == 0) return false;
    orphan_signals_.push_back(signal);
    if (signal == SIGKILL || !orphans_deaf_) {
      orphans_ = 0;
      queue_.push_back(OrphansGone{});
    }
    return true;
  }

  std::vector<StuckProcess> stuck_processes() override {
    if (!stuck_) return {};
    return {{.pid = 1000 + stuck_->first, .kernel = "wait_on_page"}};
  }

  AgentEvent next(std::optional<TimePoint> deadline) override {
    const TimePoint until = deadline.value_or(TimePoint::max());
    if (auto event = take_now()) return *event;
    const TimePoint event = next_event();
    if (event == TimePoint::max() && !deadline)
      throw std::logic_error("waits without a deadline for an event that never comes");
    if (event > until) {
      now_ = std::max(now_, until);
      return TimeUp{};
    }
    now_ = std::max(now_, event);
    return *take_now();
  }

  void post(AgentEvent event) override { queue_.push_back(std::move(event)); }
  TimePoint now() const override { return now_; }
  void end_attempt() override { ++ended_attempts_; }
  std::string stderr_tail(int local_rank) override { return stderr_[local_rank]; }
  bool is_just_above(int local_rank) override { return shown_.contains(local_rank); }
  std::string lost_output() override { return lost_; }
  bool finish_output() override { return !slow_reader_; }
  std::uint64_t unread_output() override { return unread(); }
  std::string drop_output() override {
    return "5 bytes of output are lost: their reader has not read on in time";
  }

  int ended_attempts() const { return ended_attempts_; }

 private:
  struct End {
    int local_rank;
    ExitStatus status;
    std::chrono::milliseconds after;
    int attempt = -1;
  };

  static bool ends_job(int signal) {
    return signal == SIGTERM || signal == SIGINT || signal == SIGHUP || signal == SIGQUIT;
  }

  // Nothing ends while workers are started, since time stands still.
  bool is_due(const End& one) const {
    return running_.contains(one.local_rank) && (one.attempt < 0 || one.attempt == attempt_) &&
           attempt_began_ + one.after + std::chrono::milliseconds(1) <= now_;
  }

  WorkerEnded end(int local_rank, ExitStatus status) {
    running_.erase(local_rank);
    return {local_rank, status, std::chrono::system_clock::time_point(std::chrono::seconds(1'700'000'000))};
  }

  std::optional<AgentEvent> take_now() {
    if (!queue_.empty()) {
      AgentEvent event = queue_.front();
      queue_.pop_front();
      return event;
    }
    for (auto one = outside_.begin(); one != outside_.end(); ++one) {
      if (one->first > now_) continue;
      const AgentEvent event = one->second;
      outside_.erase(one);
      return event;
    }
    for (auto one = planned_.begin(); one != planned_.end(); ++one) {
      if (!is_due(*one)) continue;
      const End due = *one;
      planned_.erase(one);
      return end(due.local_rank, due.status);
    }
    return std::nullopt;
  }

  TimePoint next_event() const {
    TimePoint first = TimePoint::max();
    for (const auto& [when, event] : outside_) first = std::min(first, when);
    for (const End& one : planned_) {
      if (!running_.contains(one.local_rank) || (one.attempt >= 0 && one.attempt != attempt_)) continue;
      first = std::min(first, attempt_began_ + one.after + std::chrono::milliseconds(1));
    }
    return first;
  }

  const TimePoint start_ = TimePoint(std::chrono::hours(1));
  TimePoint now_ = start_;
  TimePoint attempt_began_ = start_;
  int attempt_ = -1;
  std::vector<End> ends_ = {};
  std::vector<End> planned_ = {};
  std::list<std::pair<TimePoint, AgentEvent>> outside_ = {};
  std::deque<AgentEvent> queue_ = {};
  std::set<int> running_ = {};
  std::set<int> deaf_ = {};
  std::optional<std::pair<int, std::chrono::milliseconds>> stuck_ = {};
  std::map<int, std::chrono::milliseconds> without_handler_ = {};
  int leaves_ = 0;
  int orphans_ = 0;
  bool orphans_deaf_ = false;
  int broken_ = -1;
  bool slow_reader_ = false;
  std::optional<std::pair<std::chrono::milliseconds, std::string>> preparation_ = {};
  int ended_attempts_ = 0;
  std::string lost_ = {};
  std::set<int> shown_ = {};
  std::map<int, std::string> stderr_ = {};
  std::vector<WorkerStart> started_ = {};
  Signals signals_ = {};
  std::vector<int> orphan_signals_ = {};
};

}  // namespace acc::test
