// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "acc/runtime/data/batch_plan.hpp"
#include "acc/runtime/data/samplers.hpp"

namespace acc {

/// How a DataLoader reads a data set.
struct DataLoaderOptions {
  /// Samples in a batch of one process.
  std::size_t batch_size = 1;
  /// Reads the samples in a new random order in each pass.
  bool shuffle = false;
  /// Drops a last batch that is not full.
  bool drop_last = false;
  /// Determines the order: that of epoch e is torch.randperm with a generator seeded with seed + e, as in
  /// Python's DistributedSampler and accelerate's SeedableRandomSampler. Default: the seed of set_seed; 0
  /// with a distributed sampler.
  std::optional<std::uint64_t> seed = {};
  /// Chooses the samples; excludes `shuffle`.
  std::shared_ptr<const Sampler> sampler = {};
  /// Chooses whole batches; excludes all options above but `seed`.
  std::shared_ptr<const BatchSampler> batch_sampler = {};
  /// The number of threads that read batches ahead; 0: the calling thread reads them. Does not change the
  /// order. Threads share a data set whose functions are const; otherwise each reads a copy, which ends with
  /// the pass: random numbers are to come from SampleRandom.
  std::size_t num_workers = 0;
  /// The number of batches that each worker reads ahead of the loop.
  std::size_t prefetch_factor = 2;
  /// Copies batches to page-locked memory, so that copying them to an accelerator overlaps with computation.
  bool pin_memory = false;
};

/// The batches of one pass.
struct LoaderPass {
  /// The number of passes that the loader had begun before.
  std::uint64_t number = 0;
  std::uint64_t epoch = 0;  ///< The epoch of this pass.
  /// The loader's seed + epoch, which determines the order and the random numbers of transforms.
  std::uint64_t seed = 0;
  /// The batches of this process in order; empty for an iterable data set, which has no indices.
  std::vector<BatchIndices> batches = {};
  /// The number of batches of this process that the loop skips.
  std::size_t skip = 0;
  /// Whether this is the rest of a restored loader's pass.
  bool resumed = false;
  /// Whether nothing is left of it: the loop had been given its last batch.
  bool finished = false;
  /// The number of rows of the last batch, gathered from all processes, that are not repetitions; 0: all.
  std::size_t remainder = 0;
};

/// Where a loop stands in its passes.
struct LoaderPosition {
  std::uint64_t epoch = 0;  ///< The epoch of the pass.
  /// The number of batches of this process that the loop has been given of the pass.
  std::size_t batches = 0;
  /// Whether the last of them was the last one of the pass.
  bool finished = false;

  bool in_pass() const { return batches > 0 || finished; }  ///< Whether the pass has begun.
};

/// The state of a loader without its data: the batches of each pass, and the position of the loop. Copies of
/// a loader share one plan.
class LoaderPlan {
 public:
  /// The size is absent for an iterable data set. Throws Error{usage} for a batch size of 0 and for options
  /// that exclude each other.
  LoaderPlan(std::optional<std::size_t> dataset_size, const DataLoaderOptions& options);

  /// 0 for an iterable data set.
  std::size_t dataset_size() const { return dataset_size_.value_or(0); }
  const BatchRule& rule() const { return rule_; }  ///< The sizes of the batches.
  const Shard& shard() const { return shard_; }    ///< The part that this process reads.
  std::uint64_t seed() const { return seed_; }     ///< The seed of the first pass.

  void set_seed(std::uint64_t seed) { seed_ = seed; }     ///< Affects the passes that begin later.
  void set_shard(const Shard& shard) { shard_ = shard; }  ///< Affects the passes that begin later.
  /// Sets whether rank 0 reads for all: batches are then not distributed by index. Throws Error{usage} for a
  /// sampler that is distributed.
  void set_dispatched(bool dispatched);
  bool dispatched() const { return dispatched_; }  ///< Whether rank 0 reads for all.

  /// Where the next pass begins: at its start, unless it is the rest of a restored loader's.
  const LoaderPosition& next() const { return next_; }
  /// The epoch of the next pass, from 0; the rest of a restored loader's pass counts as one.
  std::uint64_t epoch() const { return next_.epoch; }
  /// Sets the epoch of the next pass, which begins at its start.
  void set_epoch(std::uint64_t epoch);

  /// The number of batches in a whole pass of this process. Throws Error{usage} for an iterable data set,
  /// which does not know.
  std::size_t size() const;

  /// Begins the next pass, without its first `skip` batches.
  LoaderPass begin_pass(std::size_t skip = 0);
  /// Pass `number` could not be read from: if it is the latest, the plan is as before it.
  void cancel_pass(std::uint64_t number);
  /// The loop has been given `batches` batches of the pass, including skipped ones; `last`: no more follow.
  void set_num_yielded(const LoaderPass& pass, std::size_t batches, bool last = false);
  /// The loop takes no more batches of its pass: it stands where it would after the last one.
  void skip_rest();
  /// The loop has reached the end of the pass.
  void set_finished(const LoaderPass& pass);
  /// The loop has left its pass, which is over if it was given the last batch.
  void leave_pass();

  /// The position of the loop as JSON: epoch, seed, the number of batches that the loop has been given, and
  /// whether the pass has more; batches that were only read ahead do not count.
  std::string state() const;

  /// The next pass resumes at the position of `state`; nothing is left of a pass whose last batch the loop
  /// was given. If the number of processes differs, the position is rounded down and some samples are read
  /// again. Throws Error{config} unless it is the state of a loader, and if it is in a pass, of one for this
  /// data set; the plan is then unchanged.
  void load_state(std::string_view state);

 private:
  // The number of samples, or batches of a BatchSampler, that all processes read in one step.
  std::size_t step_size() const;
  // The number of batches that are read in one step of this process.
  std::size_t batches_per_step() const;
  // Sets `remainder` to that of the pass, see LoaderPass.
  std::vector<BatchIndices> batches_of(std::uint64_t epoch, std::size_t* remainder = nullptr) const;
  // The same for the samples of a sampler, or the batches of a batch sampler, in a pass.
  std::size_t remainder_of(std::size_t samples) const;
  std::size_t remainder_of(const std::vector<BatchIndices>& batches) const;
  // Whether the last step repeats samples to give all processes the same number of batches.
  bool repeats() const { return shard_.even_batches && !rule_.drop_last && shard_.count > 1; }

  std::optional<std::size_t> dataset_size_;
  BatchRule rule_;
  std::shared_ptr<const Sampler> sampler_;
  std::shared_ptr<const BatchSampler> batch_sampler_;
  std::uint64_t seed_;
  Shard shard_ = {};
  bool dispatched_ = false;

  std::uint64_t passes_ = 0;
  LoaderPosition next_ = {};
  // The position of the loop in the latest pass; none before the first.
  std::optional<LoaderPosition> current_ = {};
  // Of the time before the latest pass.
  struct Before {
    LoaderPosition next = {};
    std::optional<LoaderPosition> current = {};
  };
  Before before_ = {};
};

}  // namespace acc
