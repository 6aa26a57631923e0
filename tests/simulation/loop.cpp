// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "acc/base/event_loop.hpp"
#include "simulation/network.hpp"

namespace acc::net {

using simulation::World;
using namespace std::chrono_literals;

std::chrono::sys_time<std::chrono::nanoseconds> system_clock::now() {
  constexpr auto kBegin = std::chrono::sys_days(std::chrono::year(2026) / 1 / 1);
  const World& world = World::current();
  const auto skew = simulation::Network::current().machine(world.running->machine).clock_skew;
  return kBegin + world.now().time_since_epoch() + skew;
}

// What handlers own may hold timers and post from its destructor.
io_context::~io_context() {
  enter([this] {
    *alive_ = false;
    simulation::Network::current().abandon(*this);
    for (bool again = true; again;) {
      again = !tasks_.empty();
      const auto tasks = std::exchange(tasks_, {});
      for (TimerQueue* queue : queues_) {
        again = again || !queue->empty();
        queue->abandon();
      }
    }
  });
}

void io_context::post(simulation::Callback<void()> task) {
  tasks_.push_back(std::move(task));
  wake();
}

void io_context::pause(bool pauses) {
  is_paused_ = pauses;
  if (!tasks_.empty() || alarm_rings_) wake();
}

// A process runs a moment after it was woken, now and then a long one: others had the processor.
void io_context::wake() {
  if (is_waking_ || is_paused_) return;
  is_waking_ = true;
  World& world = World::current();
  simulation::Random& random = world.random();
  const auto delay = random.chance(1) ? random.between(1ms, 20ms) : random.between(1us, 100us);
  world.after(delay, [this, alive = alive_] {
    if (!*alive) return;
    is_waking_ = false;
    if (!is_paused_) run();
  });
}

void io_context::run() {
  enter([this] {
    if (std::exchange(alarm_rings_, false)) {
      for (std::size_t i = 0; i < queues_.size(); ++i) queues_[i]->fire(*this);
      set_alarm();
    }
    // A task may end the process.
    for (std::size_t left = tasks_.size(); left > 0 && !is_paused_; --left) {
      auto task = std::move(tasks_.front());
      tasks_.pop_front();
      task();
    }
    if (!tasks_.empty()) wake();
  });
}

void io_context::set_alarm() {
  constexpr simulation::Duration kLongestWait = 5min;
  simulation::Duration wait = kLongestWait;
  bool is_empty = true;
  for (const TimerQueue* queue : queues_) {
    if (queue->empty()) continue;
    is_empty = false;
    wait = std::min(wait, queue->remaining());
  }
  ++alarm_;
  if (is_empty) return;
  World::current().after(std::max(wait, simulation::Duration(0)), [this, alive = alive_, number = alarm_] {
    if (!*alive || number != alarm_) return;
    alarm_rings_ = true;
    wake();
  });
}

}  // namespace acc::net
