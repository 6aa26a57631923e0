// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace acc {

/// The samples of one batch, by index.
using BatchIndices = std::vector<std::size_t>;

/// How a data set becomes batches.
struct BatchRule {
  /// 0: batches of any size, as a BatchSampler makes them.
  std::size_t batch_size = 1;
  /// Leaves out a last batch that is not full.
  bool drop_last = false;
};

/// Which part of the batches a process gets.
struct Shard {
  std::size_t index = 0;
  std::size_t count = 1;
  /// Every process gets the same number of full batches: what is missing is taken from the start again.
  bool even_batches = true;
  /// Cuts each batch into `count` parts, rather than dealing whole batches out in turn.
  bool split_batches = false;

  bool operator==(const Shard&) const = default;
};

/// Cuts `order` into batches. Pure.
std::vector<BatchIndices> make_batches(const std::vector<std::size_t>& order, const BatchRule& rule);

/// The batches of one process: exactly those of accelerate 1.15's BatchSamplerShard. Pure. Throws
/// Error{usage} when batches are to be split and their size is not a multiple of the number of processes.
std::vector<BatchIndices> shard_batches(const std::vector<BatchIndices>& batches, const BatchRule& rule,
                                        const Shard& shard);

/// 0..size-1 in the order of a pass: as it is, or as torch.randperm of a generator seeded with `seed`.
std::vector<std::size_t> plain_order(std::size_t size);
std::vector<std::size_t> shuffled_order(std::size_t size, std::uint64_t seed);

}  // namespace acc
