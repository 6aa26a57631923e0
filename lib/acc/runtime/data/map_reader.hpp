// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <c10/util/ArrayRef.h>

#include <memory>
#include <optional>
#include <type_traits>
#include <utility>
#include <vector>

#include "acc/base/error.hpp"
#include "acc/runtime/data/batch_source.hpp"
#include "acc/runtime/data/loader_plan.hpp"
#include "acc/runtime/data/sample.hpp"
#include "acc/runtime/data/tensor_batches.hpp"

namespace acc::detail {

/// The samples `indices` of a data set as one batch: the result of `get_batch`, or the collated results of
/// `get`.
template <class Dataset>
auto fetch(Dataset& dataset, c10::ArrayRef<std::size_t> indices) {
  if constexpr (requires { dataset.get_batch(indices); }) {
    return dataset.get_batch(indices);
  } else {
    std::vector<std::remove_cvref_t<decltype(dataset.get(std::size_t{0}))>> samples;
    samples.reserve(indices.size());
    for (const std::size_t index : indices) samples.push_back(dataset.get(index));
    return collate(std::move(samples));
  }
}

/// Reads the batches of a pass from a map-style data set. Threads share a data set whose functions are const;
/// otherwise each thread has a copy.
template <class Dataset>
class MapReader {
 public:
  using Batch = decltype(fetch(std::declval<Dataset&>(), c10::ArrayRef<std::size_t>()));

  /// Throws Error{usage} when several threads would read a data set that they can neither share nor copy.
  MapReader(const std::shared_ptr<Dataset>& dataset, LoaderPass pass, std::size_t threads)
      : pass_(std::make_shared<const LoaderPass>(std::move(pass))) {
    if (threads == 0) datasets_ = {dataset};
    while (datasets_.size() < threads) datasets_.push_back(for_thread(dataset, threads));
  }

  std::optional<LoadedBatch<Batch>> operator()(std::size_t index, std::size_t worker) const {
    if (index >= pass_->batches.size()) return std::nullopt;
    const PassSeed seed(pass_->seed);
    Dataset& dataset = *datasets_[worker];
    return LoadedBatch<Batch>{.batch = read(dataset, pass_->batches[index]),
                              .last = index + 1 == pass_->batches.size(),
                              .remainder = pass_->remainder};
  }

 private:
  static constexpr bool kHasBatches =
      requires(Dataset& dataset, c10::ArrayRef<std::size_t> indices) { dataset.get_batch(indices); };
  static constexpr bool kHasConstBatches =
      requires(const Dataset& dataset, c10::ArrayRef<std::size_t> indices) { dataset.get_batch(indices); };
  static constexpr bool kHasConstSamples = requires(const Dataset& dataset) { dataset.get(std::size_t{0}); };
  static constexpr bool kShareable = kHasBatches ? kHasConstBatches : kHasConstSamples;

  // Copies even for one thread, since another pass may read the original.
  static std::shared_ptr<Dataset> for_thread(const std::shared_ptr<Dataset>& dataset, std::size_t threads) {
    if constexpr (kShareable) {
      return dataset;
    } else if constexpr (std::is_copy_constructible_v<Dataset>) {
      return std::make_shared<Dataset>(*dataset);
    } else {
      if (threads == 1) return dataset;
      throw Error({.what = "the data set cannot be copied, and so can be read by one thread only",
                   .where = "num_workers",
                   .hint = "make its get_batch const if several threads may call it at once"});
    }
  }

  static Batch read(Dataset& dataset, const BatchIndices& indices) {
    try {
      return fetch(dataset, indices);
    } catch (...) {
      throw_naming_sample(indices, [&](std::size_t index) { fetch(dataset, {index}); });
    }
  }

  std::shared_ptr<const LoaderPass> pass_;
  std::vector<std::shared_ptr<Dataset>> datasets_;
};

}  // namespace acc::detail
