// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <queue>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "simulation/memory.hpp"

/// The world in which simulated nodes live: one thread, one clock that jumps from event to event, and one
/// source of random numbers. Equal seeds give equal worlds, to the last byte of the trace.
namespace acc::net {
class io_context;
}

namespace simulation {

using Duration = std::chrono::nanoseconds;

/// The world's clock. Starts at an hour, so that no time is zero or negative.
struct Clock {
  using duration = Duration;
  using rep = duration::rep;
  using period = duration::period;
  using time_point = std::chrono::time_point<Clock>;
  static constexpr bool is_steady = true;

  static time_point now();
};
using Time = Clock::time_point;

/// A callable that is moved, not copied.
template <class Signature>
class Callback;

template <class... Arguments>
class Callback<void(Arguments...)> {
 public:
  Callback() = default;
  template <class Function>
    requires(!std::is_same_v<std::decay_t<Function>, Callback>)
  Callback(Function function) : body_(std::make_unique<Body<Function>>(std::move(function))) {}

  explicit operator bool() const { return body_ != nullptr; }
  void operator()(Arguments... arguments) { body_->call(arguments...); }

 private:
  struct Base {
    virtual ~Base() = default;
    virtual void call(Arguments... arguments) = 0;
  };
  template <class Function>
  struct Body : Base {
    explicit Body(Function the_function) : function(std::move(the_function)) {}
    void call(Arguments... arguments) override { function(arguments...); }
    Function function;
  };

  std::unique_ptr<Base> body_ = {};
};

/// Random numbers from a seed (splitmix64).
class Random {
 public:
  explicit Random(std::uint64_t seed) : state_(seed) {}

  std::uint64_t next();
  /// Between `first` and `last`, both included.
  std::int64_t between(std::int64_t first, std::int64_t last);
  Duration between(Duration first, Duration last) { return Duration(between(first.count(), last.count())); }
  /// True in `percent` of 100 cases.
  bool chance(int percent) { return between(std::int64_t{1}, 100) <= percent; }

 private:
  std::uint64_t state_;
};

/// At most one exists in a thread.
class World {
 public:
  explicit World(std::uint64_t seed);
  ~World();
  World(const World&) = delete;
  World& operator=(const World&) = delete;

  static World& current();

  Time now() const { return now_; }
  Random& random() { return random_; }
  template <class Function>
  void at(Time time, Function event) {
    const Uncharged world;
    push(time, Callback<void()>(std::move(event)));
  }
  template <class Function>
  void after(Duration delay, Function event) {
    at(now_ + delay, std::move(event));
  }
  /// Goes on to the next event. Returns false if there is none until `end`, and goes there.
  bool step(Time end);

  /// Adds a line to the trace, with the time.
  void trace(const std::string& text);
  /// Whether trace() keeps the lines; otherwise only their hash.
  void keep_lines() { keeps_lines_ = true; }
  bool keeps_lines() const { return keeps_lines_; }
  const std::string& lines() const { return lines_; }
  std::uint64_t hash() const { return hash_; }

  /// The process that runs now.
  acc::net::io_context* running = nullptr;

 private:
  struct Event {
    Time time = {};
    std::uint64_t number = 0;
    std::shared_ptr<Callback<void()>> body = {};
    bool operator>(const Event& other) const {
      return time != other.time ? time > other.time : number > other.number;
    }
  };

  void push(Time time, Callback<void()> event);

  Time now_ = Time(std::chrono::hours(1));
  Random random_;
  std::priority_queue<Event, std::vector<Event>, std::greater<>> events_ = {};
  std::uint64_t number_ = 0;
  bool keeps_lines_ = false;
  std::string lines_ = {};
  std::uint64_t hash_ = 14695981039346656037U;
};

}  // namespace simulation
