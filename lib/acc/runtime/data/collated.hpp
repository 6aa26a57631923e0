// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <c10/util/ArrayRef.h>

#include <cstddef>
#include <functional>
#include <optional>
#include <type_traits>
#include <utility>
#include <vector>

#include "acc/runtime/data/sample_lengths.hpp"

namespace acc {

/// A data set with a collation function: the result of `collated`.
template <class Dataset, class Collator>
class CollatedDataset {
 public:
  /// What `get` of the data set returns.
  using Sample = std::remove_cvref_t<decltype(std::declval<Dataset&>().get(std::size_t{0}))>;

  CollatedDataset(Dataset dataset, Collator collator)
      : dataset_(std::move(dataset)), collator_(std::move(collator)) {}

  std::optional<std::size_t> size() const { return dataset_.size(); }  ///< The data set's.

  /// The lengths of the data set's samples.
  std::vector<std::size_t> lengths()
    requires SizedSamples<Dataset>
  {
    return sample_lengths(dataset_);
  }

  // const only if `get` and the collator can be called while const: the workers of a loader then share the
  // data set.
  /// The collated samples.
  auto get_batch(c10::ArrayRef<std::size_t> indices) const
    requires requires(const Dataset& dataset, const Collator& collator) {
      std::invoke(collator, std::vector<Sample>{dataset.get(std::size_t{0})});
    }
  {
    return batch_of(dataset_, collator_, indices);
  }
  auto get_batch(c10::ArrayRef<std::size_t> indices) { return batch_of(dataset_, collator_, indices); }

 private:
  template <class AnyDataset, class AnyCollator>
  static auto batch_of(AnyDataset& dataset, AnyCollator& collator, c10::ArrayRef<std::size_t> indices) {
    std::vector<Sample> samples;
    samples.reserve(indices.size());
    for (const std::size_t index : indices) samples.push_back(dataset.get(index));
    return std::invoke(collator, std::move(samples));
  }

  Dataset dataset_;
  Collator collator_;
};

/// Returns `dataset` with `collator` in place of acc::collate: the collate_fn of PyTorch's DataLoader and the
/// data_collator of transformers' Trainer. The collator gets the results of `dataset.get(index)` as a
/// std::vector and returns the batch: for a Trainer, a tuple or array of tensors, the labels last. If the
/// loader has workers and both can be called while const, the collator is called on several threads at once.
template <class Dataset, class Collator>
CollatedDataset<Dataset, Collator> collated(Dataset dataset, Collator collator) {
  return {std::move(dataset), std::move(collator)};
}

}  // namespace acc
