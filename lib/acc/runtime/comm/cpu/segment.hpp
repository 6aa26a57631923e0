// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "acc/base/files.hpp"
#include "acc/runtime/comm/cpu/platform.hpp"

namespace acc::detail {

/// A rank's chunks are numbered through all collectives; its progress is the number of chunks with which it
/// has done a step.
struct alignas(128) RankProgress {
  platform::Atomic<std::uint64_t> posted;    ///< Chunks whose values are in the rank's slots.
  platform::Atomic<std::uint64_t> reduced;   ///< Chunks of which the rank's own part is reduced.
  platform::Atomic<std::uint64_t> consumed;  ///< Chunks that the rank needs no longer.
  platform::Atomic<std::uint32_t> has_left;  ///< 1: the rank has left the group, or given up.
};

/// How a rank is woken.
struct alignas(128) RankBell {
  platform::Atomic<std::uint32_t> rings;  ///< A futex: increased by who wakes the rank.
  platform::Atomic<std::int32_t>
      waiting_for;  ///< The rank whose progress it waits for, or one of the following.

  static constexpr std::int32_t kNobody = -1;
  static constexpr std::int32_t kAnybody = -2;
};

static_assert(std::atomic<std::uint64_t>::is_always_lock_free &&
              std::atomic<std::uint32_t>::is_always_lock_free &&
              sizeof(std::atomic<std::uint32_t>) == sizeof(std::uint32_t));

/// Memory that the processes of a group share. It has no name in any file system, so that the kernel frees it
/// with the last process, however that ends, and it cannot be resized.
///
/// Every rank has kSlots slots for chunks, which it writes and the others read; chunk number c is in slot
/// c % kSlots.
class Segment {
 public:
  static constexpr std::size_t kChunkBytes = platform::kChunkBytes;
  static constexpr std::size_t kSlots = platform::kSlots;
  static constexpr std::size_t kSignatures = 2 * kSlots;
  static constexpr std::size_t kCacheLine = 64;

  /// Creates memory for `ranks`, all zero but that nobody waits. Throws std::system_error.
  static Descriptor create(int ranks);

  /// Maps memory that `create` made. Throws std::system_error, also if it is not of the size for `ranks`.
  Segment(const Descriptor& memory, int ranks);
  ~Segment();
  Segment(const Segment&) = delete;
  Segment& operator=(const Segment&) = delete;

  RankProgress& progress(int rank) const { return control(rank).progress; }
  RankBell& bell(int rank) const { return control(rank).bell; }
  /// What the rank's chunk is part of, written before it is posted. It stays for as many chunks again as the
  /// chunk itself: so long it takes, at most, until every rank knows that every other one has posted it.
  platform::Published<std::uint64_t>& signature(int rank, std::uint64_t chunk) const {
    return control(rank).signatures[chunk % kSignatures];
  }
  std::byte* slot(int rank, std::uint64_t chunk) const;

 private:
  struct alignas(128) Control {
    RankProgress progress;
    RankBell bell;
    std::array<platform::Published<std::uint64_t>, kSignatures> signatures;
  };

  static std::size_t bytes_for(int ranks);
  static std::size_t control_bytes(int ranks);
  Control& control(int rank) const;

  int ranks_;
  std::byte* memory_ = nullptr;
};

}  // namespace acc::detail
