// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <c10/util/ArrayRef.h>

#include <iterator>
#include <memory>
#include <optional>
#include <utility>

#include "acc/runtime/data/active_loaders.hpp"
#include "acc/runtime/data/batch_plan.hpp"

namespace acc {

struct DataLoaderOptions {
  /// Samples per process and step.
  std::size_t batch_size = 1;
  /// A new order in each pass.
  bool shuffle = false;
  /// Leaves out a last batch that is not full.
  bool drop_last = false;
  /// Decides the orders: pass number e is torch.randperm of a generator seeded with seed + e, as Python's
  /// DistributedSampler and accelerate's SeedableRandomSampler. Default: what set_seed was given.
  std::optional<std::uint64_t> seed = {};
};

/// What a loader knows without its data set: which batches come in which pass.
class LoaderPlan {
 public:
  /// Throws Error{usage} for a batch size of 0.
  LoaderPlan(std::size_t dataset_size, const DataLoaderOptions& options);

  std::size_t dataset_size() const { return dataset_size_; }
  const BatchRule& rule() const { return rule_; }
  std::uint64_t seed() const { return seed_; }
  const Shard& shard() const { return shard_; }

  void set_seed(std::uint64_t seed) { seed_ = seed; }
  void set_shard(const Shard& shard) { shard_ = shard; }
  void set_epoch(std::uint64_t epoch) { epoch_ = epoch; }

  /// The number of batches in a pass of this process.
  std::size_t size() const;

  /// The batches of the next pass; the one after it is another epoch.
  std::vector<BatchIndices> next_pass();

  /// How many rows of the last batch, gathered from all processes, are not there twice; 0: all of them.
  std::size_t remainder() const;

 private:
  std::size_t dataset_size_;
  BatchRule rule_;
  bool shuffle_;
  std::uint64_t seed_;
  std::uint64_t epoch_ = 0;
  Shard shard_ = {};
};

/// Reads a data set in batches; `for (auto& batch : loader)` is one pass. The data set is anything with
/// LibTorch's `size()` and `get_batch(indices)`: acc::TensorDataset, or torch::data's own with a Stack
/// transform.
template <class Dataset>
class DataLoader {
 public:
  using Batch = decltype(std::declval<Dataset&>().get_batch(c10::ArrayRef<std::size_t>()));

  /// Throws Error{usage} when the options do not fit.
  DataLoader(Dataset dataset, const DataLoaderOptions& options)
      : dataset_(std::move(dataset)), plan_(std::make_shared<LoaderPlan>(size_of(dataset_), options)) {}

  /// One pass, from its first batch on. Only one iterator at a time reads it.
  class Iterator {
   public:
    using iterator_category = std::input_iterator_tag;
    using value_type = Batch;
    using difference_type = std::ptrdiff_t;
    using pointer = Batch*;
    using reference = Batch&;

    Iterator(Dataset& dataset, std::vector<BatchIndices> batches, ActiveLoaders::Entry entry)
        : dataset_(&dataset), batches_(std::move(batches)), entry_(std::move(entry)) {
      read();
    }

    Batch& operator*() { return *batch_; }
    Batch* operator->() { return &*batch_; }
    Iterator& operator++() {
      ++next_;
      read();
      return *this;
    }
    void operator++(int) { ++*this; }
    bool operator==(std::default_sentinel_t /*end*/) const { return !batch_; }

   private:
    void read() {
      batch_.reset();
      if (next_ >= batches_.size()) return;
      entry_.set_at_end(next_ + 1 == batches_.size());
      batch_.emplace(dataset_->get_batch(batches_[next_]));
    }

    Dataset* dataset_;
    std::vector<BatchIndices> batches_;
    std::size_t next_ = 0;
    std::optional<Batch> batch_ = {};
    ActiveLoaders::Entry entry_;
  };

  /// Starts the next pass.
  Iterator begin() { return Iterator(dataset_, plan_->next_pass(), active_->enter(plan_->remainder())); }
  std::default_sentinel_t end() const { return {}; }

  /// The number of batches in a pass of this process.
  std::size_t size() const { return plan_->size(); }

  /// Which epoch the next pass is; without it they count from 0.
  void set_epoch(std::uint64_t epoch) { plan_->set_epoch(epoch); }

  Dataset& dataset() { return dataset_; }
  LoaderPlan& plan() { return *plan_; }
  const LoaderPlan& plan() const { return *plan_; }

  /// Copies of a loader have one plan.
  const std::shared_ptr<LoaderPlan>& shared_plan() const { return plan_; }
  void set_plan(std::shared_ptr<LoaderPlan> plan) { plan_ = std::move(plan); }

  /// Where the loader tells that it is being read; Accelerator::prepare sets its own.
  void set_active_loaders(std::shared_ptr<ActiveLoaders> active) { active_ = std::move(active); }

 private:
  // torch::data's sizes are optional, ours are not.
  static std::size_t size_of(const Dataset& dataset) {
    const std::optional<std::size_t> size = dataset.size();
    return size.value_or(0);
  }

  Dataset dataset_;
  std::shared_ptr<LoaderPlan> plan_;
  std::shared_ptr<ActiveLoaders> active_ = std::make_shared<ActiveLoaders>();
};

template <class Dataset>
DataLoader(Dataset, DataLoaderOptions) -> DataLoader<Dataset>;

}  // namespace acc
