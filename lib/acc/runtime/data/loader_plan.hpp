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

struct DataLoaderOptions {
  /// Samples per process and step.
  std::size_t batch_size = 1;
  /// A new order in each pass.
  bool shuffle = false;
  /// Leaves out a last batch that is not full.
  bool drop_last = false;
  /// Decides the orders: pass number e is torch.randperm of a generator seeded with seed + e, as Python's
  /// DistributedSampler and accelerate's SeedableRandomSampler. Default: what set_seed was given; with
  /// a sampler that distributes by itself 0.
  std::optional<std::uint64_t> seed = {};
  /// Chooses the samples, instead of `shuffle`.
  std::shared_ptr<const Sampler> sampler = {};
  /// Chooses whole batches, instead of all of the above but the seed.
  std::shared_ptr<const BatchSampler> batch_sampler = {};
  /// Threads that read batches ahead; 0: the loop reads them itself. The order stays the same.
  std::size_t num_workers = 0;
  /// How many batches each worker reads ahead of the loop.
  std::size_t prefetch_factor = 2;
  /// Puts batches into page-locked memory, from which copies to an accelerator overlap with computing.
  bool pin_memory = false;
};

/// What one pass reads.
struct LoaderPass {
  /// How many passes the loader had begun before.
  std::uint64_t number = 0;
  std::uint64_t epoch = 0;
  /// The loader's seed + epoch: decides the order, and the random numbers of transforms.
  std::uint64_t seed = 0;
  /// Of this process, in order; empty for an iterable data set, which has no indices.
  std::vector<BatchIndices> batches = {};
  /// How many batches of this process come before the first that the loop gets.
  std::size_t skip = 0;
  /// Whether it goes on where a restored loader was.
  bool resumed = false;
  /// How many rows of the last batch, gathered from all processes, are not there twice; 0: all of them.
  std::size_t remainder = 0;
};

/// What a loader knows without its data: which batches come in which pass, and where the loop is. Copies of a
/// loader share one.
class LoaderPlan {
 public:
  /// For an iterable data set the size is absent. Throws Error{usage} for a batch size of 0 and for options
  /// that exclude each other.
  LoaderPlan(std::optional<std::size_t> dataset_size, const DataLoaderOptions& options);

  /// 0 for an iterable data set.
  std::size_t dataset_size() const { return dataset_size_.value_or(0); }
  const BatchRule& rule() const { return rule_; }
  const Shard& shard() const { return shard_; }
  std::uint64_t seed() const { return seed_; }

  void set_seed(std::uint64_t seed) { seed_ = seed; }
  void set_shard(const Shard& shard) { shard_ = shard; }
  /// Whether rank 0 reads for all: its batches are then not dealt out. Throws Error{usage} when the sampler
  /// has already given each process its part.
  void set_dispatched(bool dispatched);
  bool dispatched() const { return dispatched_; }

  /// Which epoch the next pass is: they count from 0, and a pass that was left counts.
  std::uint64_t epoch() const { return next_.epoch; }
  /// The next pass is this epoch's, from its start.
  void set_epoch(std::uint64_t epoch);

  /// The number of batches in a whole pass of this process. Throws Error{usage} for an iterable data set,
  /// which does not know.
  std::size_t size() const;

  /// Begins the next pass, without its first `skip` batches.
  LoaderPass begin_pass(std::size_t skip = 0);
  /// The loop has now got `batches` of the pass, skipped ones included. A pass counts until another begins.
  void set_given(const LoaderPass& pass, std::size_t batches);
  /// The loop has seen the end of the pass.
  void set_finished(const LoaderPass& pass);

  /// Where the loop is, as JSON: epoch, seed, and how many batches it has got, not those only read ahead.
  std::string state() const;

  /// The next pass goes on where the loop was that gave `state`, also on another number of processes: batches
  /// that cannot be told apart exactly are then read again. Throws Error{config} for what is no state of a
  /// loader of this data set; the plan is then unchanged.
  void load_state(std::string_view state);

 private:
  // The pass `epoch` after its first `batches`.
  struct Position {
    std::uint64_t epoch = 0;
    std::size_t batches = 0;
  };

  // How many samples, or batches of a BatchSampler, all processes read in one step.
  std::size_t step_size() const;
  // How many batches of the shared reader make one step of this process.
  std::size_t batches_per_step() const;
  std::vector<BatchIndices> batches_of(std::uint64_t epoch, std::size_t* samples = nullptr) const;

  std::optional<std::size_t> dataset_size_;
  BatchRule rule_;
  std::shared_ptr<const Sampler> sampler_;
  std::shared_ptr<const BatchSampler> batch_sampler_;
  std::uint64_t seed_;
  Shard shard_ = {};
  bool dispatched_ = false;

  std::uint64_t passes_ = 0;
  Position next_ = {};
  // Where the loop is in the latest pass; none before the first.
  std::optional<Position> current_ = {};
};

}  // namespace acc
