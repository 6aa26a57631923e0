// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <exception>
#include <functional>
#include <mutex>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "acc/base/error.hpp"
#include "acc/base/files.hpp"
#include "acc/runtime/comm/cpu/combine.hpp"
#include "acc/runtime/comm/cpu/platform.hpp"
#include "acc/runtime/comm/cpu/segment.hpp"

namespace acc::detail {

/// A collective operation on memory of this process, which has to stay until it is done.
struct Collective {
  enum class Kind : std::uint8_t { barrier, broadcast, all_gather, all_reduce, all_to_all };

  Kind kind = Kind::barrier;
  std::byte* data = nullptr;  ///< What this rank contributes; of broadcast and all_reduce also the result.
  std::size_t bytes = 0;  ///< Of `data`, the same on all ranks; all_to_all: of what each rank gives to each.
  std::vector<std::byte*> sources = {};  ///< all_to_all: what this rank gives to each other rank.
  /// all_gather and all_to_all: where each rank's data goes. all_to_all leaves this rank's own alone, and
  /// all_gather if that is null: it is there already.
  std::vector<std::byte*> gathered = {};
  int root = 0;                                  ///< broadcast: whose data.
  c10::ScalarType type = c10::ScalarType::Byte;  ///< all_reduce: of the elements.
  Combination combination =
      Combination::sum;  ///< all_reduce: how they are combined, in the order of the ranks.
  bool average = false;  ///< all_reduce: divides the sum by the number of ranks.
  /// From the call until it fails, without the time in which this process is suspended.
  std::chrono::milliseconds timeout = {};
  /// Called when it is done, or has failed, on a thread of the group or the one that waits.
  std::function<void(std::exception_ptr)> done = {};
};

/// Why the operations of a MemoryGroup fail, in words of Gloo's. An Error, since a backward that is not
/// called through the Accelerator passes it on.
class MemoryFailure : public Error {
 public:
  explicit MemoryFailure(std::string text) : Error({.kind = ErrorKind::system, .what = std::move(text)}) {}
};

/// Collective operations of processes that share a Segment. Every process begins the same operations in the
/// same order; they are done in that order. All get the same bits, which depend only on the data and the
/// number of ranks. Ranks that do not begin the same operations fail. Where a broadcast needs nothing of a
/// rank that began another one, that is with the next operation that does, or some chunks later.
///
/// Whoever begins an operation does what is possible at once. The rest is done by a thread that waits for it,
/// by the next call, or soon after by a thread of the group. Who has to wait for another rank spins shortly,
/// if there is a core for every rank, yields the core, and then sleeps in the kernel.
class MemoryGroup {
 public:
  /// Of an all_to_all: a chunk has a cache line for each other rank at least.
  static constexpr std::size_t kMaxRanksOfAllToAll = Segment::kChunkBytes / Segment::kCacheLine + 1;

  struct Ranks {
    int rank = 0;
    int size = 1;
    /// How messages call each rank; by its number if this is empty.
    std::vector<int> names = {};
    /// A pidfd of each rank's process; that of this one is not used.
    std::vector<platform::Process> processes = {};
    /// There is a core for each rank.
    bool core_for_each = false;
  };

  MemoryGroup(const Descriptor& memory, Ranks ranks);
  /// Leaves the group: others that still need this rank fail. Not on the group's own thread, see
  /// OffThreadDelete.
  ~MemoryGroup();
  MemoryGroup(const MemoryGroup&) = delete;
  MemoryGroup& operator=(const MemoryGroup&) = delete;

  /// Whether this is called on the group's thread.
  bool is_own_thread() const { return thread_.get_id() == platform::own_thread(); }

  /// Begins an operation, and returns its number.
  std::uint64_t begin(Collective collective);

  /// Returns when the operation is done, or `timeout` (if any) is over, which is false. Throws what the
  /// operation failed of: MemoryFailure, that another process closed its connection, did not answer in time
  /// or called another operation.
  bool wait(std::uint64_t number, std::optional<std::chrono::milliseconds> timeout);

  /// Somebody will ask for the end of what was begun without calling wait.
  void hurry();

  /// What is not done, and what is begun later, fails with `text`; other ranks that still need this one fail,
  /// too.
  void leave(const std::string& text);

 private:
  using Clock = platform::Clock;
  using Lock = std::unique_lock<platform::Mutex>;
  using Counter = platform::Atomic<std::uint64_t> RankProgress::*;

  struct Operation {
    Collective what = {};
    std::uint64_t number = 0;
    std::uint64_t first_chunk = 0;
    std::uint64_t chunks = 1;
    std::uint64_t signature = 0;
    /// Each rank reduces a part of a chunk; otherwise each reduces all of it.
    bool in_parts = false;
    Combine combine = nullptr;
    Divide divide = nullptr;
    Clock::time_point deadline = {};
  };
  struct Part {
    std::size_t offset = 0;
    std::size_t bytes = 0;
  };

  Operation& operation_of(std::uint64_t chunk);
  std::size_t window_of(const Collective& what) const;
  Part part_of_data(const Operation& operation, std::uint64_t chunk) const;
  std::byte* exchange_slot(const Collective& what, int from, int to, std::uint64_t chunk) const;
  Part part_of_chunk(const Operation& operation, std::uint64_t chunk, int rank) const;

  bool may_post() const;
  bool post_needs(int rank) const;
  bool reduce_needs(int rank);
  bool consume_needs(int rank);
  template <class Needs>
  std::int32_t first_needed(Needs needs) const;
  std::int32_t post_waits_for() const;
  std::int32_t reduce_waits_for();
  std::int32_t consume_waits_for();
  std::int32_t awaited_rank();
  bool step();
  void post();
  void reduce();
  void consume();
  void reduce_into(std::byte* to, const Operation& operation, std::uint64_t chunk, Part part);
  bool all_made_same_calls(std::uint64_t chunks);
  bool made_same_call(int rank, std::uint64_t chunk);
  void advance(Counter counter, std::uint64_t& own_count);

  template <class Predicate>
  void drive(Lock& lock, Clock::time_point give_up, Predicate is_done);
  void sleep(Lock& lock, Clock::time_point give_up);
  // Called at least every kMaxSleep while an operation is in progress.
  void leave_out_suspension();
  void look_for_lost_ranks(bool ask_kernel);
  void fail(const std::string& text);
  int name_of(int rank) const;
  void ring(int rank);
  void finish_operations(Lock& lock);
  void call_thread(std::chrono::nanoseconds after);
  void run_thread();

  Segment segment_;
  Ranks ranks_;
  RankProgress& own_progress_;
  RankBell& own_bell_;
  int max_spins_;
  platform::Timer timer_ = {};

  std::atomic<int> callers_ = 0;
  platform::Mutex mutex_ = {};
  platform::Condition changed_ = {};
  std::deque<Operation> operations_ = {};
  std::vector<std::function<void()>> done_ = {};
  Clock::time_point looked_ = {};
  std::uint64_t begun_ = 0;
  std::uint64_t completed_ = 0;
  std::uint64_t begun_chunks_ = 0;
  std::uint64_t compared_ = 0;
  std::uint64_t posted_ = 0;
  std::uint64_t reduced_ = 0;
  std::uint64_t consumed_ = 0;
  std::exception_ptr failure_ = {};
  static constexpr std::chrono::nanoseconds kNotCalled = std::chrono::nanoseconds::max();
  std::chrono::nanoseconds called_for_ = kNotCalled;
  bool driven_ = false;
  bool asleep_ = false;
  bool ends_ = false;
  platform::Thread thread_ = {};
};

}  // namespace acc::detail
