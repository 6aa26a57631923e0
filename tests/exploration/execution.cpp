// SPDX-License-Identifier: Apache-2.0
#include "exploration/execution.hpp"

#include <cxxabi.h>
#include <fmt/format.h>
#include <sys/mman.h>

#include <algorithm>
#include <cstring>
#include <system_error>
#include <utility>

namespace exploration {
namespace {

using Action = Option::Action;

constexpr std::size_t kStackBytes = 256U << 10U;
// Data is checked by lines: parts of chunks begin at one.
constexpr std::size_t kLine = 64;
// A rank that stands still for a while resumes after others have looked for it a few times.
constexpr Time kPause = std::chrono::milliseconds(25);

Execution* running_execution = nullptr;

// Stacks are used again by the next execution.
std::byte* stack_of(std::size_t fiber) {
  static std::vector<std::byte*> stacks;
  while (stacks.size() <= fiber) {
    void* const stack =
        ::mmap(nullptr, kStackBytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_STACK, -1, 0);
    if (stack == MAP_FAILED) throw std::system_error(errno, std::generic_category(), "a fiber's stack");
    stacks.push_back(static_cast<std::byte*>(stack));
  }
  return stacks[fiber];
}

}  // namespace

void VectorClock::join(const VectorClock& other) {
  for (std::size_t fiber = 0; fiber < kFibers; ++fiber)
    times_[fiber] = std::max(times_[fiber], other.times_[fiber]);
}

Execution::Execution(Chooser& chooser, Possibilities possibilities, const Memory& memory, bool traced)
    : chooser_(chooser), possibilities_(possibilities), memory_(memory), traced_(traced) {
  static std::uint32_t executions = 0;
  number_ = ++executions;
  running_execution = this;
}

Execution::~Execution() {
  running_execution = nullptr;
}

Execution& Execution::current() {
  return *running_execution;
}

bool Execution::is_running() {
  return running_execution != nullptr && running_execution->running_ != kNobody;
}

int Execution::start(int rank, std::string name, std::function<void()> body) {
  const std::size_t number = fibers_.size();
  auto added = std::make_unique<Fiber>();
  added->rank = rank;
  added->name = std::move(name);
  added->body = std::move(body);
  if (running_ != kNobody) {
    added->clock = fiber().clock;
    ++fiber().clock[static_cast<std::size_t>(running_)];
  }
  added->clock[number] = 1;
  ::getcontext(&added->context);
  added->context.uc_stack.ss_sp = stack_of(number);
  added->context.uc_stack.ss_size = kStackBytes;
  added->context.uc_link = nullptr;
  ::makecontext(&added->context, &Execution::run_body, 0);
  fibers_.push_back(std::move(added));
  return static_cast<int>(number);
}

void Execution::run_body() {
  Execution& self = current();
  self.fiber().body();
  self.flush();
  self.fiber().is_done = true;
  self.wake(&self.fiber(), /*all=*/true);
  self.leave_fiber();
}

std::string Execution::run() {
  running_ = 0;
  switch_context(main_, main_exceptions_, fibers_.front()->context, fibers_.front()->exceptions);
  running_ = kNobody;
  return failure_;
}

void Execution::release_lost_rank() {
  if (lost_rank_ == kNobody || !failure_.empty()) return;
  lost_rank_ = kNobody;
  is_over_ = true;
  const auto next = [this] {
    return std::ranges::find_if(fibers_, [this](const auto& one) { return can_run(*one); });
  };
  if (next() == fibers_.end()) advance_time();
  running_ = static_cast<int>(next() - fibers_.begin());
  switch_context(main_, main_exceptions_, fiber().context, fiber().exceptions);
  running_ = kNobody;
}

void Execution::fail(const std::string& text) {
  failure_ = text;
  note(text);
  return_to_main();
  __builtin_unreachable();
}

void Execution::return_to_main() {
  Fiber& from = fiber();
  switch_context(from.context, from.exceptions, main_, main_exceptions_);
}

void Execution::note(const std::string& text) {
  if (traced_ && !is_over_) trace_.push_back(running_ == kNobody ? text : fiber().name + ": " + text);
}

bool Execution::can_run(const Fiber& fiber) const {
  return !fiber.is_done && fiber.blocked_by == nullptr && fiber.rank != lost_rank_;
}

// `early`: while others could go on.
bool Execution::can_time_out(const Fiber& fiber, bool early) const {
  if (fiber.is_done || fiber.blocked_by == nullptr || fiber.rank == lost_rank_ || fiber.deadline == kNever)
    return false;
  return early || is_over_ || !fiber.is_sleep || possibilities_.sleeps_time_out || lost_rank_ != kNobody;
}

bool Execution::offers_fault() const {
  return possibilities_.fault != Fault::none && !had_fault_ && fiber().rank == possibilities_.victim;
}

// What only the fibers of a rank share need not be seen by other ranks at each point, and the other way
// round: what lies between two points of one kind is the same for those who see the other kind.
void Execution::point(bool shared) {
  Fiber& self = fiber();
  ++self.points;
  if (is_over_) return;
  options_.clear();
  options_.push_back({Action::go_on, running_});
  for (std::size_t other = 0; other < fibers_.size(); ++other) {
    const Fiber& one = *fibers_[other];
    if (static_cast<int>(other) == running_ || (one.rank == self.rank) == shared) continue;
    if (can_run(one)) {
      options_.push_back({Action::run, static_cast<int>(other)});
    } else if (can_time_out(one, /*early=*/true)) {
      options_.push_back({Action::time_out, static_cast<int>(other)});
    }
  }
  if (shared && offers_fault())
    options_.push_back({possibilities_.fault == Fault::kill ? Action::kill : Action::stop, running_});
  const Option option = choose(/*forced=*/false);
  switch (option.action) {
    case Action::go_on:
    case Action::delay:
      return;
    case Action::kill:
    case Action::stop:
      return lose_rank(option.action);
    case Action::time_out:
      time_out(*fibers_[static_cast<std::size_t>(option.fiber)]);
      break;
    case Action::run:
      break;
  }
  switch_to(option.fiber);
}

Option Execution::choose(bool forced) {
  if (options_.size() == 1) return options_.front();
  std::size_t chosen = 0;
  if (const Deviation* const planned = chooser_.planned(fiber().name, fiber().points)) {
    const auto match = std::ranges::find_if(options_, [&](const Option& option) {
      return option.action == planned->action &&
             fibers_[static_cast<std::size_t>(option.fiber)]->name == planned->next;
    });
    if (match != options_.end()) chosen = static_cast<std::size_t>(match - options_.begin());
  } else {
    chosen = chooser_.choose(options_, forced);
  }
  const Option option = options_[chosen];
  if (chosen > 0) {
    deviations_.push_back({.fiber = fiber().name,
                           .point = fiber().points,
                           .action = option.action,
                           .next = fibers_[static_cast<std::size_t>(option.fiber)]->name});
  }
  return option;
}

void Execution::lose_rank(Action action) {
  had_fault_ = true;
  lost_rank_ = fiber().rank;
  if (possibilities_.fault == Fault::stop_for_a_while) resumes_ = now_ + kPause;
  note(action == Action::kill ? "its process is killed" : "its process stands still");
  leave_fiber();
}

// The current fiber cannot go on.
void Execution::leave_fiber() {
  ++fiber().points;
  while (true) {
    options_.clear();
    // The next one after this, so that no fiber is always the last.
    for (std::size_t i = 1; i <= fibers_.size(); ++i) {
      const std::size_t other = (static_cast<std::size_t>(running_) + i) % fibers_.size();
      if (can_run(*fibers_[other])) options_.push_back({Action::run, static_cast<int>(other)});
    }
    if (!options_.empty()) break;
    const bool all_done = std::ranges::all_of(
        fibers_, [this](const auto& one) { return one->is_done || one->rank == lost_rank_; });
    if (all_done && resumes_ == kNever) {
      return_to_main();
    } else {
      advance_time();
    }
  }
  const Option option = is_over_ ? options_.front() : choose(/*forced=*/true);
  if (option.fiber != running_) switch_to(option.fiber);
}

// Nobody can go on: the next timer or timeout expires, or a rank resumes.
void Execution::advance_time() {
  Fiber* next = nullptr;
  for (const auto& one : fibers_) {
    if (can_time_out(*one, /*early=*/false) && (next == nullptr || one->deadline < next->deadline))
      next = one.get();
  }
  if (resumes_ != kNever && (next == nullptr || resumes_ <= next->deadline)) {
    now_ = std::max(now_, std::exchange(resumes_, kNever));
    lost_rank_ = kNobody;
    return;
  }
  if (next == nullptr) fail(stuck_text());
  time_out(*next);
}

std::string Execution::stuck_text() const {
  const bool sleeps = std::ranges::any_of(
      fibers_, [](const auto& one) { return !one->is_done && one->blocked_by != nullptr && one->is_sleep; });
  std::string text = sleeps ? "lost wake-up:" : "deadlock:";
  for (const auto& one : fibers_) {
    if (!one->is_done && one->blocked_by != nullptr && one->rank != lost_rank_)
      text += fmt::format(" {} waits for {};", one->name, one->blocked_by);
  }
  text.back() = '.';
  return text;
}

void Execution::time_out(Fiber& fiber) {
  now_ = std::max(now_, fiber.deadline);
  fiber.blocked_by = nullptr;
  fiber.timed_out = true;
  fiber.deadline = kNever;
}

void Execution::switch_to(int next) {
  Fiber& from = fiber();
  running_ = next;
  switch_context(from.context, from.exceptions, fiber().context, fiber().exceptions);
}

void Execution::switch_context(ucontext_t& from, std::array<void*, 2>& saved, ucontext_t& to,
                               const std::array<void*, 2>& restored) {
  void* const exceptions = abi::__cxa_get_globals();
  std::memcpy(saved.data(), exceptions, sizeof saved);
  std::memcpy(exceptions, restored.data(), sizeof restored);
  ::swapcontext(&from, &to);
}

std::size_t Execution::offset_of(const void* address) const {
  return static_cast<std::size_t>(static_cast<const std::byte*>(address) - memory_.bytes.data());
}

bool Execution::is_shared(const void* address) const {
  return address >= memory_.bytes.data() && address < memory_.bytes.data() + memory_.bytes.size();
}

Execution::Shadow& Execution::shadow_of(const void* address) {
  static std::vector<Shadow> shadows;
  const std::size_t index = offset_of(address) / 4;
  if (shadows.size() <= index) shadows.resize(memory_.bytes.size() / 4);
  Shadow& shadow = shadows[index];
  if (shadow.execution != number_) shadow = {.execution = number_};
  return shadow;
}

std::string Execution::name_of(const void* address) const {
  return memory_.name_of(offset_of(address));
}

Execution::Value Execution::load(const void* word, Value value, Order order) {
  const Shadow& shadow = shadow_of(word);
  Fiber& self = fiber();
  if (order == Order::relaxed) {
    self.relaxed_loads.join(shadow.released);
  } else {
    self.clock.join(shadow.released);
  }
  for (const DelayedStore& store : self.delayed) {
    if (store.word == word) value = store.value;
  }
  if (traced_) note(fmt::format("reads {}: {}", name_of(word), static_cast<std::int64_t>(value)));
  return value;
}

void Execution::store(void* word, Value value, Order order, void (*apply)(void* word, Value value)) {
  point(/*shared=*/true);
  Fiber& self = fiber();
  const VectorClock& released = order == Order::relaxed ? self.last_fence : self.clock;
  if (traced_) note(fmt::format("sets {} to {}", name_of(word), static_cast<std::int64_t>(value)));
  self.delayed.push_back({.word = word, .value = value, .clock = released, .apply = apply});
  if (order != Order::relaxed) ++self.clock[static_cast<std::size_t>(running_)];
  ++self.points;
  if (order != Order::sequential && !is_over_) {
    options_ = {{Action::go_on, running_}, {Action::delay, running_}};
    if (choose(/*forced=*/false).action == Action::delay) return note("which others see later");
  }
  flush();
}

void Execution::flush() {
  for (const DelayedStore& store : fiber().delayed) {
    store.apply(store.word, store.value);
    shadow_of(store.word).released = store.clock;
  }
  fiber().delayed.clear();
}

void Execution::before_update(void* word) {
  point(/*shared=*/true);
  flush();
  fiber().clock.join(shadow_of(word).released);
}

void Execution::after_update(void* word, Value before, Value after) {
  shadow_of(word).released.join(fiber().clock);
  ++fiber().clock[static_cast<std::size_t>(running_)];
  if (traced_)
    note(fmt::format("changes {} from {} to {}", name_of(word), static_cast<std::int64_t>(before),
                     static_cast<std::int64_t>(after)));
}

void Execution::fence() {
  flush();
  fiber().clock.join(fiber().relaxed_loads);
  fiber().last_fence = fiber().clock;
  ++fiber().clock[static_cast<std::size_t>(running_)];
}

void Execution::check_order(const Shadow& shadow, bool writes, const void* address) {
  const VectorClock& clock = fiber().clock;
  const auto race = [&](std::size_t other, const char* before) {
    fail(fmt::format("data race: {} {} {}, which {} {}", fiber().name, writes ? "writes" : "reads",
                     name_of(address), fibers_[other]->name, before));
  };
  if (is_over_) return;
  if (shadow.writer != kNobody && shadow.written > clock[static_cast<std::size_t>(shadow.writer)])
    race(static_cast<std::size_t>(shadow.writer), "wrote before without a release that this rank acquired");
  for (std::size_t other = 0; writes && other < fibers_.size(); ++other) {
    if (shadow.read[other] > clock[other]) race(other, "may still read");
  }
}

void Execution::read(const void* data, std::size_t bytes) {
  if (!is_shared(data)) return;
  for (std::size_t at = 0; at < bytes; at += kLine) {
    const std::byte* const address = static_cast<const std::byte*>(data) + at;
    Shadow& shadow = shadow_of(address);
    check_order(shadow, /*writes=*/false, address);
    shadow.read[static_cast<std::size_t>(running_)] = fiber().clock[static_cast<std::size_t>(running_)];
  }
  if (traced_) note(fmt::format("reads {}", name_of(data)));
}

void Execution::write(const void* data, std::size_t bytes) {
  if (!is_shared(data)) return;
  for (std::size_t at = 0; at < bytes; at += kLine) {
    const std::byte* const address = static_cast<const std::byte*>(data) + at;
    Shadow& shadow = shadow_of(address);
    check_order(shadow, /*writes=*/true, address);
    shadow.writer = running_;
    shadow.written = fiber().clock[static_cast<std::size_t>(running_)];
  }
  if (traced_) note(fmt::format("writes {}", name_of(data)));
}

void Execution::shared_point() {
  point(/*shared=*/true);
}

void Execution::own_point() {
  point(/*shared=*/false);
}

bool Execution::block(const char* reason, const void* object, Time deadline) {
  Fiber& self = fiber();
  flush();
  self.blocked_by = reason;
  self.object = object;
  self.deadline = deadline;
  self.timed_out = false;
  leave_fiber();
  self.deadline = kNever;
  return !self.timed_out;
}

void Execution::wake(const void* object, bool all) {
  for (const auto& one : fibers_) {
    if (one->blocked_by == nullptr || one->object != object) continue;
    one->blocked_by = nullptr;
    one->deadline = kNever;
    if (!all) return;
  }
}

void Execution::sleep(const void* word, Time max_time) {
  note("sleeps");
  fiber().is_sleep = true;
  const bool woken = block("a wake-up", word, now_ + max_time);
  fiber().is_sleep = false;
  note(woken ? "wakes up" : "wakes up by its timeout");
}

void Execution::wake_sleeper(const void* word) {
  point(/*shared=*/true);
  flush();
  if (traced_) note("wakes who sleeps on " + name_of(word));
  wake(word, /*all=*/false);
}

void Execution::rearm(const void* object, Time deadline) {
  for (const auto& one : fibers_) {
    if (one->blocked_by != nullptr && one->object == object) one->deadline = deadline;
  }
}

void Execution::join(int number) {
  const Fiber* const other = fibers_[static_cast<std::size_t>(number)].get();
  if (!other->is_done) block("the end of a thread", other, kNever);
  acquire(other->clock);
}

void Execution::acquire(const VectorClock& from) {
  fiber().clock.join(from);
}

void Execution::release(VectorClock& to) {
  to.join(fiber().clock);
  ++fiber().clock[static_cast<std::size_t>(running_)];
}

}  // namespace exploration
