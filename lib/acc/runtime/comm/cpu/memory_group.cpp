// SPDX-License-Identifier: Apache-2.0
#include "acc/runtime/comm/cpu/memory_group.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <utility>

#include "acc/base/blocked_signals.hpp"

namespace acc::detail {
namespace {

using namespace std::chrono_literals;

// When the group's own thread continues an operation that nobody waits for, and one whose end was asked for.
// Usually the next call comes sooner.
constexpr std::chrono::nanoseconds kContinueAfter = 1ms;
constexpr std::chrono::nanoseconds kHurryAfter = 50us;
// How soon a rank that sleeps notices the end of another process.
constexpr std::chrono::nanoseconds kMaxSleep = 10ms;
// Who does not look at an operation in progress for so long was suspended.
constexpr std::chrono::nanoseconds kSuspended = 500ms;
constexpr std::size_t kCacheLine = Segment::kCacheLine;

// Kind, combination, type and root in the upper half, the lower bits of the size in the other.
constexpr unsigned kKindShift = 61;
std::uint64_t signature_of(const Collective& what) {
  const auto field = [](auto value, unsigned shift) { return static_cast<std::uint64_t>(value) << shift; };
  return field(what.kind, kKindShift) | field(what.combination, 59U) | field(what.average, 58U) |
         field(what.type, 52U) | field(what.root, 36U) | (what.bytes & ((std::uint64_t{1} << 36U) - 1));
}

// "all_reduce (max of Float) of 40 bytes", "broadcast from rank 1 of 8 bytes"
std::string signature_text(std::uint64_t signature) {
  constexpr std::array<const char*, 5> kNames = {"barrier", "broadcast", "all_gather", "all_reduce",
                                                 "all_to_all"};
  constexpr std::array<const char*, 4> kCombinations = {"sum", "product", "min", "max"};
  const auto field = [signature](unsigned shift, unsigned bits) {
    return signature >> shift & ((std::uint64_t{1} << bits) - 1);
  };
  const auto kind = static_cast<Collective::Kind>(signature >> kKindShift);
  std::string details;
  if (kind == Collective::Kind::all_reduce) {
    details = fmt::format(" ({} of {})", field(58, 1) != 0 ? "mean" : kCombinations.at(field(59, 2)),
                          c10::toString(static_cast<c10::ScalarType>(field(52, 6))));
  } else if (kind == Collective::Kind::broadcast) {
    details = fmt::format(" from rank {}", field(36, 16));
  }
  return fmt::format("{}{} of {} bytes", kNames.at(signature >> kKindShift), details, field(0, 36));
}

}  // namespace

MemoryGroup::MemoryGroup(const Descriptor& memory, Ranks ranks)
    : segment_(memory, ranks.size),
      ranks_(std::move(ranks)),
      own_progress_(segment_.progress(ranks_.rank)),
      own_bell_(segment_.bell(ranks_.rank)),
      max_spins_(ranks_.core_for_each ? platform::kMaxSpins : 0) {
  const BlockedSignals blocked;
  thread_ = platform::Thread([this] { run_thread(); });
}

MemoryGroup::~MemoryGroup() {
  {
    leave("the process group was destroyed");
    const Lock lock(mutex_);
    ends_ = true;
    call_thread(kHurryAfter);
  }
  thread_.join();
}

std::uint64_t MemoryGroup::begin(Collective collective) {
  ++callers_;
  Lock lock(mutex_);
  --callers_;
  Operation operation{.what = std::move(collective)};
  const Collective& what = operation.what;
  operation.number = ++begun_;
  operation.first_chunk = begun_chunks_;
  const std::size_t window = window_of(what);
  operation.chunks = std::max<std::size_t>(1, (what.bytes + window - 1) / window);
  operation.signature = signature_of(what);
  leave_out_suspension();
  operation.deadline = looked_ + what.timeout;
  if (what.kind == Collective::Kind::all_reduce) {
    operation.in_parts = ranks_.size > 2 && what.bytes >= platform::kReduceInPartsFrom;
    operation.combine = combine_function(what.type, what.combination);
    if (what.average) operation.divide = divide_function(what.type);
  }
  const std::uint64_t number = operation.number;
  begun_chunks_ += operation.chunks;
  operations_.push_back(std::move(operation));
  if (!driven_ || asleep_) {
    while (!failure_ && step()) {
    }
    // The thread that sleeps may have to wait for another rank now, or no longer.
    if (asleep_) ring(ranks_.rank);
    if (!driven_ && !operations_.empty() && !failure_) call_thread(kContinueAfter);
  }
  finish_operations(lock);
  return number;
}

bool MemoryGroup::wait(std::uint64_t number, std::optional<std::chrono::milliseconds> timeout) {
  const Clock::time_point give_up = timeout ? Clock::now() + *timeout : Clock::time_point::max();
  Lock lock(mutex_);
  const auto is_done = [&] { return completed_ >= number || failure_; };
  while (!is_done() && Clock::now() < give_up) {
    if (!driven_) {
      drive(lock, give_up, is_done);
      if (!operations_.empty()) call_thread(kHurryAfter);
    } else if (timeout) {
      changed_.wait_until(lock, give_up);
    } else {
      changed_.wait(lock);
    }
  }
  if (completed_ >= number) return true;
  if (failure_) std::rethrow_exception(failure_);
  return false;
}

void MemoryGroup::hurry() {
  const Lock lock(mutex_);
  if (!driven_ && !operations_.empty()) call_thread(kHurryAfter);
}

void MemoryGroup::leave(const std::string& text) {
  Lock lock(mutex_);
  if (!failure_) fail(text);
  finish_operations(lock);
  changed_.notify_all();
}

MemoryGroup::Operation& MemoryGroup::operation_of(std::uint64_t chunk) {
  return *std::ranges::find_if(operations_, [chunk](const Operation& operation) {
    return chunk < operation.first_chunk + operation.chunks;
  });
}

// How many bytes of the data one chunk carries. Those of an all_to_all carry as much for each other rank.
std::size_t MemoryGroup::window_of(const Collective& what) const {
  if (what.kind != Collective::Kind::all_to_all || ranks_.size <= 2) return Segment::kChunkBytes;
  const std::size_t each = Segment::kChunkBytes / static_cast<std::size_t>(ranks_.size - 1);
  return each / kCacheLine * kCacheLine;
}

MemoryGroup::Part MemoryGroup::part_of_data(const Operation& operation, std::uint64_t chunk) const {
  const std::size_t window = window_of(operation.what);
  const std::size_t offset = (chunk - operation.first_chunk) * window;
  return {.offset = offset, .bytes = std::min(window, operation.what.bytes - offset)};
}

// Where a chunk of an all_to_all has what rank `from` gives to rank `to`.
std::byte* MemoryGroup::exchange_slot(const Collective& what, int from, int to, std::uint64_t chunk) const {
  return segment_.slot(from, chunk) + window_of(what) * static_cast<std::size_t>(to < from ? to : to - 1);
}

MemoryGroup::Part MemoryGroup::part_of_chunk(const Operation& operation, std::uint64_t chunk,
                                             int rank) const {
  const std::size_t bytes = part_of_data(operation, chunk).bytes;
  const auto size = static_cast<std::size_t>(ranks_.size);
  const std::size_t each = ((bytes + size - 1) / size + kCacheLine - 1) / kCacheLine * kCacheLine;
  const std::size_t begin = std::min(bytes, each * static_cast<std::size_t>(rank));
  return {.offset = begin, .bytes = std::min(each, bytes - begin)};
}

// The next chunk can be posted when its slot is free: everybody has consumed the one before it there. This
// rank is asked, too: another one may have posted and consumed that chunk since this rank last looked.
bool MemoryGroup::may_post() const {
  return posted_ < begun_chunks_ && posted_ < consumed_ + Segment::kSlots;
}

bool MemoryGroup::post_needs(int rank) const {
  return segment_.progress(rank).consumed.load(std::memory_order_acquire) + Segment::kSlots <= posted_;
}

// What is not reduced in parts needs no such step.
bool MemoryGroup::reduce_needs(int rank) {
  return operation_of(reduced_).in_parts &&
         segment_.progress(rank).posted.load(std::memory_order_acquire) <= reduced_;
}

bool MemoryGroup::consume_needs(int rank) {
  const Operation& operation = operation_of(consumed_);
  if (operation.what.kind == Collective::Kind::broadcast && rank != operation.what.root) return false;
  const Counter counter = operation.in_parts ? &RankProgress::reduced : &RankProgress::posted;
  return (segment_.progress(rank).*counter).load(std::memory_order_acquire) <= consumed_;
}

// The first rank that a step needs, or kNobody.
template <class Needs>
std::int32_t MemoryGroup::first_needed(Needs needs) const {
  for (int rank = 0; rank < ranks_.size; ++rank) {
    if (rank != ranks_.rank && needs(rank)) return rank;
  }
  return RankBell::kNobody;
}

std::int32_t MemoryGroup::consume_waits_for() {
  return first_needed([this](int rank) { return consume_needs(rank); });
}
std::int32_t MemoryGroup::reduce_waits_for() {
  return first_needed([this](int rank) { return reduce_needs(rank); });
}
std::int32_t MemoryGroup::post_waits_for() const {
  return first_needed([this](int rank) { return post_needs(rank); });
}

// A rank; kNobody if a step can be taken; kAnybody if the steps wait for different ranks.
std::int32_t MemoryGroup::awaited_rank() {
  std::optional<std::int32_t> peer;
  const auto add = [&](std::int32_t rank) {
    if (rank == RankBell::kNobody || peer == RankBell::kNobody) {
      peer = RankBell::kNobody;
    } else {
      peer = !peer || *peer == rank ? rank : RankBell::kAnybody;
    }
  };
  if (consumed_ < reduced_) add(consume_waits_for());
  if (reduced_ < posted_) add(reduce_waits_for());
  if (may_post()) add(post_waits_for());
  return peer.value_or(RankBell::kAnybody);
}

// The step of the oldest chunk first: it makes room for others.
bool MemoryGroup::step() {
  if (consumed_ < reduced_ && consume_waits_for() == RankBell::kNobody) {
    consume();
  } else if (reduced_ < posted_ && reduce_waits_for() == RankBell::kNobody) {
    reduce();
  } else if (may_post() && post_waits_for() == RankBell::kNobody) {
    post();
  } else {
    return false;
  }
  return true;
}

void MemoryGroup::post() {
  // All have consumed the chunk that was in the slot, and so posted it, of whatever operation.
  if (posted_ >= Segment::kSlots && !all_made_same_calls(posted_ - Segment::kSlots + 1)) return;
  const Operation& operation = operation_of(posted_);
  const Collective& what = operation.what;
  segment_.signature(ranks_.rank, posted_) = operation.signature;
  const Part part = part_of_data(operation, posted_);
  if (what.kind == Collective::Kind::all_to_all) {
    for (int rank = 0; rank < ranks_.size; ++rank) {
      if (rank == ranks_.rank || part.bytes == 0) continue;
      platform::copy(exchange_slot(what, ranks_.rank, rank, posted_),
                     what.sources[static_cast<std::size_t>(rank)] + part.offset, part.bytes);
    }
  } else if (what.kind != Collective::Kind::broadcast || what.root == ranks_.rank) {
    if (part.bytes > 0)
      platform::copy(segment_.slot(ranks_.rank, posted_), what.data + part.offset, part.bytes);
  }
  advance(&RankProgress::posted, posted_);
}

// Others read the reduced part from this rank's slot.
void MemoryGroup::reduce() {
  const Operation& operation = operation_of(reduced_);
  if (!operation.in_parts) {
    ++reduced_;
    return;
  }
  if (!all_made_same_calls(reduced_ + 1)) return;
  const Part part = part_of_chunk(operation, reduced_, ranks_.rank);
  std::byte* const to = operation.what.data + part_of_data(operation, reduced_).offset + part.offset;
  reduce_into(to, operation, reduced_, part);
  platform::copy(segment_.slot(ranks_.rank, reduced_) + part.offset, to, part.bytes);
  advance(&RankProgress::reduced, reduced_);
}

void MemoryGroup::reduce_into(std::byte* to, const Operation& operation, std::uint64_t chunk, Part part) {
  const std::size_t count = part.bytes / c10::elementSize(operation.what.type);
  const auto values = [&](int rank) { return segment_.slot(rank, chunk) + part.offset; };
  operation.combine(to, values(0), values(1), count);
  for (int rank = 2; rank < ranks_.size; ++rank) operation.combine(to, to, values(rank), count);
  if (operation.divide != nullptr) operation.divide(to, ranks_.size, count);
}

void MemoryGroup::consume() {
  Operation& operation = operation_of(consumed_);
  const Collective& what = operation.what;
  const bool is_broadcast = what.kind == Collective::Kind::broadcast;
  if (is_broadcast ? !made_same_call(what.root, consumed_) : !all_made_same_calls(consumed_ + 1)) return;
  const Part part = part_of_data(operation, consumed_);
  if (is_broadcast && what.root != ranks_.rank) {
    platform::copy(what.data + part.offset, segment_.slot(what.root, consumed_), part.bytes);
  } else if (what.kind == Collective::Kind::all_gather) {
    for (int rank = 0; rank < ranks_.size; ++rank) {
      std::byte* const destination = what.gathered[static_cast<std::size_t>(rank)];
      if (destination != nullptr && part.bytes > 0)
        platform::copy(destination + part.offset, segment_.slot(rank, consumed_), part.bytes);
    }
  } else if (what.kind == Collective::Kind::all_to_all) {
    for (int rank = 0; rank < ranks_.size; ++rank) {
      if (rank == ranks_.rank || part.bytes == 0) continue;
      platform::copy(what.gathered[static_cast<std::size_t>(rank)] + part.offset,
                     exchange_slot(what, rank, ranks_.rank, consumed_), part.bytes);
    }
  } else if (operation.in_parts) {
    for (int rank = 0; rank < ranks_.size; ++rank) {
      if (rank == ranks_.rank) continue;
      const Part reduced = part_of_chunk(operation, consumed_, rank);
      platform::copy(what.data + part.offset + reduced.offset,
                     segment_.slot(rank, consumed_) + reduced.offset, reduced.bytes);
    }
  } else if (what.kind == Collective::Kind::all_reduce) {
    reduce_into(what.data + part.offset, operation, consumed_, {.offset = 0, .bytes = part.bytes});
  }
  advance(&RankProgress::consumed, consumed_);
  if (consumed_ == operation.first_chunk + operation.chunks) {
    ++completed_;
    if (what.done) done_.push_back([done = std::move(operation.what.done)] { done(nullptr); });
    operations_.pop_front();
  }
}

// Ranks that do not call the same operation would mix up each other's bytes. Compares what has not been
// compared of as many chunks, which all have posted.
bool MemoryGroup::all_made_same_calls(std::uint64_t chunks) {
  for (; compared_ < chunks; ++compared_) {
    for (int rank = 0; rank < ranks_.size; ++rank) {
      if (!made_same_call(rank, compared_)) return false;
    }
  }
  return true;
}

bool MemoryGroup::made_same_call(int rank, std::uint64_t chunk) {
  const std::uint64_t signature = segment_.signature(ranks_.rank, chunk);
  const std::uint64_t other = segment_.signature(rank, chunk);
  if (other == signature) return true;
  fail(fmt::format("the processes do not make the same calls: rank {} calls {}, rank {} calls {}",
                   name_of(ranks_.rank), signature_text(signature), name_of(rank), signature_text(other)));
  return false;
}

// Publishes that this rank has done a step with one chunk more, and wakes who waits for that.
void MemoryGroup::advance(Counter counter, std::uint64_t& own_count) {
  (own_progress_.*counter).store(++own_count, std::memory_order_release);
  // A rank that goes to sleep writes for whom it waits, and then reads the counters.
  platform::fence();
  for (int rank = 0; rank < ranks_.size; ++rank) {
    const std::int32_t peer = segment_.bell(rank).waiting_for.load(std::memory_order_relaxed);
    if (rank != ranks_.rank && (peer == ranks_.rank || peer == RankBell::kAnybody)) ring(rank);
  }
}

void MemoryGroup::ring(int rank) {
  RankBell& bell = segment_.bell(rank);
  if (bell.waiting_for.exchange(RankBell::kNobody) == RankBell::kNobody) return;
  ++bell.rings;
  platform::futex_wake(bell.rings);
}

// Takes all steps up to some condition, and waits for the others in between.
template <class Predicate>
void MemoryGroup::drive(Lock& lock, Clock::time_point give_up, Predicate is_done) {
  driven_ = true;
  for (int idle = 0; !is_done() && !failure_;) {
    if (step()) {
      idle = 0;
      finish_operations(lock);
      if (callers_ > 0) {
        lock.unlock();
        platform::yield();
        lock.lock();
      }
      continue;
    }
    ++idle;
    if (idle <= max_spins_ + platform::kYields) {
      lock.unlock();
      if (idle <= max_spins_) {
        platform::relax();
      } else {
        platform::yield();
      }
      lock.lock();
    } else if (Clock::now() >= give_up) {
      break;
    } else {
      sleep(lock, give_up);
    }
  }
  driven_ = false;
  finish_operations(lock);
  changed_.notify_all();
}

void MemoryGroup::sleep(Lock& lock, Clock::time_point give_up) {
  const std::uint32_t rings = own_bell_.rings;
  const std::int32_t peer = awaited_rank();
  own_bell_.waiting_for.store(peer);
  platform::fence();
  if (peer == RankBell::kNobody || awaited_rank() != peer) {
    own_bell_.waiting_for.store(RankBell::kNobody);
    return;
  }
  leave_out_suspension();
  const Clock::time_point deadline = std::min(give_up, operations_.front().deadline);
  const std::chrono::nanoseconds max_time =
      std::min(kMaxSleep, std::max<std::chrono::nanoseconds>(0ns, deadline - looked_));
  asleep_ = true;
  lock.unlock();
  platform::futex_wait(own_bell_.rings, rings, max_time);
  lock.lock();
  asleep_ = false;
  own_bell_.waiting_for.store(RankBell::kNobody);
  leave_out_suspension();
  if (!failure_ && !operations_.empty()) look_for_lost_ranks(own_bell_.rings == rings);
}

void MemoryGroup::leave_out_suspension() {
  const Clock::time_point now = Clock::now();
  if (const auto gap = now - looked_; gap > kSuspended) {
    for (Operation& operation : operations_) operation.deadline += gap;
  }
  looked_ = now;
}

// `ask_kernel`: whether the others' processes still exist.
void MemoryGroup::look_for_lost_ranks(bool ask_kernel) {
  for (int rank = 0; rank < ranks_.size; ++rank) {
    if (rank == ranks_.rank) continue;
    const bool has_left =
        segment_.progress(rank).has_left != 0 ||
        (ask_kernel && platform::has_ended(ranks_.processes[static_cast<std::size_t>(rank)]));
    // It may have left after it did what this rank needs.
    const bool is_needed = (consumed_ < reduced_ && consume_needs(rank)) ||
                           (reduced_ < posted_ && reduce_needs(rank)) || (may_post() && post_needs(rank));
    if (has_left && is_needed) return fail(fmt::format("Connection closed by peer: rank {}", name_of(rank)));
  }
  if (Clock::now() >= operations_.front().deadline) {
    const std::int32_t peer = awaited_rank();
    fail(fmt::format("Timed out waiting {} ms for {}", operations_.front().what.timeout.count(),
                     peer < 0 ? "other ranks" : fmt::format("rank {}", name_of(peer))));
  }
}

int MemoryGroup::name_of(int rank) const {
  return ranks_.names.empty() ? rank : ranks_.names[static_cast<std::size_t>(rank)];
}

void MemoryGroup::fail(const std::string& text) {
  failure_ = std::make_exception_ptr(MemoryFailure(text));
  own_progress_.has_left = 1;
  for (int rank = 0; rank < ranks_.size; ++rank) ring(rank);
}

// Calls `done` of the operations that are done or have failed, unlocked: it may begin others.
void MemoryGroup::finish_operations(Lock& lock) {
  if (failure_) {
    for (Operation& operation : operations_) {
      if (operation.what.done)
        done_.push_back([done = std::move(operation.what.done), failure = failure_] { done(failure); });
    }
    operations_.clear();
  }
  if (done_.empty()) return;
  auto done = std::exchange(done_, {});
  lock.unlock();
  for (auto& call : done) {
    call();
    call = nullptr;  // the tensors that it holds are free before the next one is called
  }
  changed_.notify_all();
  lock.lock();
}

void MemoryGroup::call_thread(std::chrono::nanoseconds after) {
  if (called_for_ <= after) return;
  called_for_ = after;
  timer_.set(after);
}

void MemoryGroup::run_thread() {
  while (true) {
    timer_.wait();
    Lock lock(mutex_);
    called_for_ = kNotCalled;
    if (ends_) return;
    if (!driven_) drive(lock, Clock::time_point::max(), [this] { return operations_.empty(); });
  }
}

}  // namespace acc::detail
