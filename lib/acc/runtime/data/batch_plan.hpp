// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace acc {

/// The samples of one batch, by index.
using BatchIndices = std::vector<std::size_t>;

/// How a data set is divided into batches.
struct BatchRule {
  /// 0: batches of any size, as a BatchSampler makes them.
  std::size_t batch_size = 1;
  /// Drops a last batch that is not full.
  bool drop_last = false;
};

/// The part of the batches that a process reads.
struct Shard {
  std::size_t index = 0;  ///< Which of them, from 0.
  std::size_t count = 1;  ///< The number of processes.
  /// Every process reads the same number of full batches: the last ones are filled with samples from the
  /// start of the pass.
  bool even_batches = true;
  /// Splits each batch into `count` parts, rather than distributing whole batches in turn.
  bool split_batches = false;

  bool operator==(const Shard&) const = default;
};

namespace detail {

/// Divides `order` into batches. Pure.
std::vector<BatchIndices> make_batches(const std::vector<std::size_t>& order, const BatchRule& rule);

/// The batches of one process: exactly those of accelerate 1.15's BatchSamplerShard. Pure. Throws
/// Error{usage} when batches are to be split and their size is not a multiple of the number of processes.
std::vector<BatchIndices> shard_batches(const std::vector<BatchIndices>& batches, const BatchRule& rule,
                                        const Shard& shard);

/// Which samples of an iterable data set a process reads: a slice of each block, as accelerate 1.15's
/// IterableDatasetShard.
struct BlockRule {
  std::size_t block_size = 1;
  std::size_t slice_begin = 0;
  std::size_t slice_end = 1;
  /// Fills the last block with samples of the first one; off: the last block may be short.
  bool fill = false;
  bool drop_last = false;
};

/// Throws Error{usage} when batches are to be split and their size is not a multiple of the number of
/// processes.
BlockRule block_rule(const BatchRule& rule, const Shard& shard);

/// The indices 0 to size - 1, in order or as torch.randperm with a generator seeded with `seed`.
std::vector<std::size_t> plain_order(std::size_t size);
std::vector<std::size_t> shuffled_order(std::size_t size, std::uint64_t seed);

}  // namespace detail

}  // namespace acc
