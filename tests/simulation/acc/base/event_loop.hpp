// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <boost/asio/error.hpp>
#include <boost/system/error_code.hpp>
#include <chrono>
#include <cstddef>
#include <deque>
#include <map>
#include <memory>
#include <utility>
#include <vector>

#include "simulation/world.hpp"

// The clocks of running_clock.hpp are others here: libraries that are linked beside the simulated sources
// have them too, on Asio.
#define LostTime SimulatedLostTime
#define RunningClock SimulatedRunningClock
#define RunningClockWaits SimulatedRunningClockWaits
#define RunningTimer SimulatedRunningTimer

/// The names of lib/acc/base/event_loop.hpp, simulated. A loop is a process: it runs when the world has come
/// to the time at which something happens to it, unless it is paused.
namespace acc::net {

using boost::system::error_code;
using steady_clock = simulation::Clock;

/// The clock of the machine of the process that runs now, which may be wrong.
struct system_clock {
  static std::chrono::sys_time<std::chrono::nanoseconds> now();
};

/// The timers of a loop on one clock.
class TimerQueue {
 public:
  virtual ~TimerQueue() = default;
  virtual bool empty() const = 0;
  /// How long the process may sleep for the earliest of them.
  virtual simulation::Duration remaining() const = 0;
  /// Posts the handlers of those that have expired.
  virtual void fire(class io_context& loop) = 0;
  /// Takes all handlers out, to be destroyed.
  virtual void abandon() = 0;
};

class io_context {
 public:
  class executor_type {
   public:
    explicit executor_type(io_context& loop) : loop_(&loop) {}
    io_context& context() const { return *loop_; }

   private:
    io_context* loop_;
  };

  explicit io_context(int the_machine) : machine(the_machine) {}
  ~io_context();
  io_context(const io_context&) = delete;
  io_context& operator=(const io_context&) = delete;

  executor_type get_executor() { return executor_type(*this); }
  void post(simulation::Callback<void()> task);
  /// A paused process does nothing, while its timers run on and its kernel takes what arrives.
  void pause(bool pauses);
  bool is_paused() const { return is_paused_; }
  std::size_t tasks() const { return tasks_.size(); }
  /// Bytes that it has allocated and not freed.
  std::int64_t memory() const { return simulation::held_by(account_); }
  /// A timer is the earliest of its queue now.
  void set_alarm();

  template <class Queue>
  Queue& timers() {
    static constexpr char kKey = 0;
    auto& queue = timer_queues_[&kKey];
    if (!queue) {
      queue = std::make_unique<Queue>();
      queues_.push_back(queue.get());
    }
    return static_cast<Queue&>(*queue);
  }
  template <class Value>
  Value& variable() {
    static constexpr char kKey = 0;
    auto& value = variables_[&kKey];
    if (!value) value = std::make_shared<Value>();
    return *static_cast<Value*>(value.get());
  }

  /// Calls `function` as a part of this process.
  template <class Function>
  void enter(Function function) {
    auto& world = simulation::World::current();
    auto* const before = std::exchange(world.running, this);
    const simulation::Account account_before = simulation::charge(account_);
    function();
    simulation::charge(account_before);
    world.running = before;
  }

  const int machine;

 private:
  void wake();
  void run();

  const simulation::Account account_ = simulation::new_account();
  // Outlive what the tasks and timers own.
  std::map<const void*, std::shared_ptr<void>> variables_ = {};
  std::map<const void*, std::unique_ptr<TimerQueue>> timer_queues_ = {};
  std::vector<TimerQueue*> queues_ = {};
  std::deque<simulation::Callback<void()>> tasks_ = {};
  bool is_paused_ = false;
  bool is_waking_ = false;
  bool alarm_rings_ = false;
  std::uint64_t alarm_ = 0;
  std::shared_ptr<bool> alive_ = std::make_shared<bool>(true);
};

template <class Handler>
void post(io_context& loop, Handler handler) {
  loop.post(std::move(handler));
}

template <class Value>
Value& of_loop() {
  return simulation::World::current().running->variable<Value>();
}

template <class Clock>
struct wait_traits {
  static typename Clock::duration to_wait_duration(const typename Clock::duration& remaining) {
    return remaining;
  }
};

template <class Clock, class Waits = wait_traits<Clock>>
class basic_waitable_timer {
 public:
  using time_point = typename Clock::time_point;
  using duration = typename Clock::duration;

  explicit basic_waitable_timer(io_context& loop) : loop_(&loop) {}
  explicit basic_waitable_timer(const io_context::executor_type& executor) : loop_(&executor.context()) {}
  basic_waitable_timer(io_context& loop, duration delay) : loop_(&loop) { expires_after(delay); }
  ~basic_waitable_timer() { cancel(); }
  basic_waitable_timer(const basic_waitable_timer&) = delete;
  basic_waitable_timer& operator=(const basic_waitable_timer&) = delete;

  std::size_t expires_at(time_point time) {
    const std::size_t canceled = cancel();
    expiry_ = time;
    return canceled;
  }
  std::size_t expires_after(duration delay) { return expires_at(Clock::now() + delay); }
  time_point expiry() const { return expiry_; }

  std::size_t cancel() {
    auto& waits = loop_->timers<Queue>().waits;
    std::size_t canceled = 0;
    for (auto entry = waits.lower_bound(expiry_); entry != waits.end() && entry->first == expiry_;) {
      if (entry->second.timer != this) {
        ++entry;
        continue;
      }
      loop_->post([handler = std::move(entry->second.handler)]() mutable {
        handler(boost::asio::error::operation_aborted);
      });
      entry = waits.erase(entry);
      ++canceled;
    }
    return canceled;
  }

  template <class Handler>
  void async_wait(Handler handler) {
    auto& waits = loop_->timers<Queue>().waits;
    const auto entry = waits.emplace(expiry_, Wait{this, std::move(handler)});
    if (entry == waits.begin()) loop_->set_alarm();
  }

 private:
  struct Wait {
    const basic_waitable_timer* timer = nullptr;
    simulation::Callback<void(error_code)> handler = {};
  };
  struct Queue : TimerQueue {
    bool empty() const override { return waits.empty(); }
    simulation::Duration remaining() const override {
      return Waits::to_wait_duration(waits.begin()->first - Clock::now());
    }
    void fire(io_context& loop) override {
      while (!waits.empty() && waits.begin()->first <= Clock::now()) {
        loop.post([handler = std::move(waits.begin()->second.handler)]() mutable { handler(error_code()); });
        waits.erase(waits.begin());
      }
    }
    void abandon() override { const auto abandoned = std::exchange(waits, {}); }
    std::multimap<time_point, Wait> waits = {};
  };

  io_context* loop_;
  time_point expiry_ = {};
};

using steady_timer = basic_waitable_timer<steady_clock>;

}  // namespace acc::net
