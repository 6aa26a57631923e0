// SPDX-License-Identifier: Apache-2.0
#include "acc/runtime/data/data_loader.hpp"

#include "acc/base/error.hpp"
#include "acc/runtime/random.hpp"

namespace acc {

LoaderPlan::LoaderPlan(std::size_t dataset_size, const DataLoaderOptions& options)
    : dataset_size_(dataset_size),
      rule_{.batch_size = options.batch_size, .drop_last = options.drop_last},
      shuffle_(options.shuffle),
      seed_(options.seed.value_or(default_seed())) {
  if (options.batch_size == 0) throw Error({.what = "must be at least 1", .where = "batch_size"});
}

std::size_t LoaderPlan::size() const {
  return shard_batches(make_batches(plain_order(dataset_size_), rule_), rule_, shard_).size();
}

std::vector<BatchIndices> LoaderPlan::next_pass() {
  const std::uint64_t epoch = epoch_++;
  const auto order = shuffle_ ? shuffled_order(dataset_size_, seed_ + epoch) : plain_order(dataset_size_);
  return shard_batches(make_batches(order, rule_), rule_, shard_);
}

std::size_t LoaderPlan::remainder() const {
  const bool repeats = shard_.even_batches && !rule_.drop_last;
  const std::size_t together = rule_.batch_size * (shard_.split_batches ? 1 : shard_.count);
  return repeats ? dataset_size_ % together : 0;
}

}  // namespace acc
