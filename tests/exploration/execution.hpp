// SPDX-License-Identifier: Apache-2.0
// One execution of several ranks in one thread. Each thread of a rank is a fiber; which of them goes on is
// chosen before each access to what they share, so that the same choices give the same execution. Time is
// simulated: it advances when nobody can go on, or when a timeout is chosen.
//
// Data that ranks share is checked with vector clocks: an access that no acquire and release puts behind the
// access of another rank is a data race, whatever its result is. A store that is not sequentially consistent
// can be delayed up to the next fence, as in a processor's store buffer. Other reorderings are not simulated.
#pragma once

#include <ucontext.h>

#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <limits>
#include <memory>
#include <span>
#include <string>
#include <vector>

namespace exploration {

using Time = std::chrono::nanoseconds;
inline constexpr Time kNever = Time::max();
inline constexpr int kNobody = -1;

/// What may come next at some point of a fiber.
struct Option {
  enum class Action : std::uint8_t {
    go_on,     ///< This fiber.
    run,       ///< Another fiber.
    time_out,  ///< Another fiber, whose timer or timeout expires.
    delay,     ///< This fiber; others see its store later.
    kill,      ///< The process of this fiber ends.
    stop,      ///< The process of this fiber stands still until nobody else can go on, or forever.
  };
  Action action = Action::go_on;
  int fiber = kNobody;

  bool operator==(const Option&) const = default;
};

/// A choice of something else than the first option.
struct Deviation {
  std::string fiber = {};
  int point = 0;
  Option::Action action = Option::Action::run;
  std::string next = {};

  bool operator==(const Deviation&) const = default;
};

/// Chooses what comes next.
class Chooser {
 public:
  virtual ~Chooser() = default;

  /// An index of `options`, of which there are at least two. `forced`: the fiber cannot go on.
  virtual std::size_t choose(std::span<const Option> options, bool forced) = 0;
  /// For choosers that know the execution: what to do at this point of a fiber, or null.
  virtual const Deviation* planned(const std::string& /*fiber*/, int /*point*/) { return nullptr; }
};

enum class Fault : std::uint8_t { none, kill, stop_for_a_while, stop_forever };

/// What can happen in an execution beside the order of its fibers.
struct Possibilities {
  Fault fault = Fault::none;
  int victim = 0;                ///< The rank that a fault may hit.
  bool sleeps_time_out = false;  ///< Sleeping for the whole time of a futex is no lost wake-up.
};

class VectorClock {
 public:
  static constexpr std::size_t kFibers = 9;

  std::uint32_t& operator[](std::size_t fiber) { return times_[fiber]; }
  std::uint32_t operator[](std::size_t fiber) const { return times_[fiber]; }
  void join(const VectorClock& other);

 private:
  std::array<std::uint32_t, kFibers> times_ = {};
};

class Execution {
 public:
  using Value = std::uint64_t;
  enum class Order : std::uint8_t { relaxed, release_or_acquire, sequential };

  /// Whose memory_ is `shared`: the name of a word there is that which `name_of` returns.
  struct Memory {
    std::span<std::byte> bytes = {};
    std::function<std::string(std::size_t offset)> name_of = {};
  };

  Execution(Chooser& chooser, Possibilities possibilities, const Memory& memory, bool traced);
  ~Execution();
  Execution(const Execution&) = delete;
  Execution& operator=(const Execution&) = delete;

  /// The one that runs.
  static Execution& current();
  static bool is_running();

  /// Adds a fiber of a rank; its name must be unique. Returns its number.
  int start(int rank, std::string name, std::function<void()> body);
  /// Runs all fibers to their ends, but those of a lost rank. What went wrong, or nothing.
  std::string run();
  /// After run(): lets a lost rank end, whatever it does, to free what its fibers hold.
  void release_lost_rank();

  const std::vector<Deviation>& deviations() const { return deviations_; }
  const std::vector<std::string>& trace() const { return trace_; }
  Time now() const { return now_; }
  bool is_lost(int rank) const { return rank == lost_rank_; }
  bool has_ended(int rank) const { return is_lost(rank) && possibilities_.fault == Fault::kill; }
  int current_fiber() const { return running_; }
  int current_rank() const { return fiber().rank; }

  /// Ends the execution: something is wrong.
  [[noreturn]] void fail(const std::string& text);
  /// A line for the trace.
  void note(const std::string& text);
  /// From now on somebody may have to sleep for the whole time of a futex.
  void expect_timeouts() { possibilities_.sleeps_time_out = true; }

  // What the fibers call.
  /// Before an access to what ranks share.
  void shared_point();
  /// Before a thread's own lock or condition.
  void own_point();
  void enter_kernel() { flush(); }
  Value load(const void* word, Value value, Order order);
  void store(void* word, Value value, Order order, void (*apply)(void* word, Value value));
  void before_update(void* word);
  void after_update(void* word, Value before, Value after);
  void fence();
  void read(const void* data, std::size_t bytes);
  void write(const void* data, std::size_t bytes);
  /// Until wake(), or until `deadline`, which is false.
  bool block(const char* reason, const void* object, Time deadline);
  void wake(const void* object, bool all);
  void sleep(const void* word, Time max_time);
  void wake_sleeper(const void* word);
  /// Who is blocked on the object waits until another time.
  void rearm(const void* object, Time deadline);
  void join(int fiber);
  // For objects that order what the fibers of one rank do.
  void acquire(const VectorClock& from);
  void release(VectorClock& to);

 private:
  struct DelayedStore {
    void* word = nullptr;
    Value value = 0;
    VectorClock clock = {};
    void (*apply)(void* word, Value value) = nullptr;
  };
  struct Fiber {
    int rank = 0;
    std::string name = {};
    std::function<void()> body = {};
    ucontext_t context = {};
    std::array<void*, 2> exceptions = {};  ///< Those in flight, which the C++ runtime keeps for each thread.
    bool is_done = false;
    const char* blocked_by = nullptr;
    const void* object = nullptr;
    Time deadline = kNever;
    bool is_sleep = false;
    bool timed_out = false;
    int points = 0;
    VectorClock clock = {};
    VectorClock relaxed_loads = {};
    VectorClock last_fence = {};
    std::vector<DelayedStore> delayed = {};
  };
  /// Who wrote and read some bytes.
  struct Shadow {
    std::uint32_t execution = 0;
    int writer = kNobody;
    std::uint32_t written = 0;
    VectorClock read = {};
    VectorClock released = {};
  };

  Fiber& fiber() { return *fibers_[static_cast<std::size_t>(running_)]; }
  const Fiber& fiber() const { return *fibers_[static_cast<std::size_t>(running_)]; }
  bool can_run(const Fiber& fiber) const;
  bool can_time_out(const Fiber& fiber, bool early) const;
  void point(bool shared);
  Option choose(bool forced);
  bool offers_fault() const;
  void lose_rank(Option::Action action);
  void leave_fiber();
  void advance_time();
  void time_out(Fiber& fiber);
  void switch_to(int next);
  void switch_context(ucontext_t& from, std::array<void*, 2>& saved, ucontext_t& to,
                      const std::array<void*, 2>& restored);
  void flush();
  static void run_body();
  std::size_t offset_of(const void* address) const;
  bool is_shared(const void* address) const;
  Shadow& shadow_of(const void* address);
  std::string name_of(const void* address) const;
  void check_order(const Shadow& shadow, bool writes, const void* address);
  void return_to_main();
  std::string stuck_text() const;

  Chooser& chooser_;
  Possibilities possibilities_;
  Memory memory_;
  bool traced_;
  std::uint32_t number_;
  std::vector<std::unique_ptr<Fiber>> fibers_ = {};
  std::vector<Option> options_ = {};
  std::vector<Deviation> deviations_ = {};
  std::vector<std::string> trace_ = {};
  std::string failure_ = {};
  Time now_ = std::chrono::hours(1);
  Time resumes_ = kNever;
  int running_ = kNobody;
  int lost_rank_ = kNobody;
  bool had_fault_ = false;
  bool is_over_ = false;
  ucontext_t main_ = {};
  std::array<void*, 2> main_exceptions_ = {};
};

}  // namespace exploration
