// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <c10/util/ArrayRef.h>

#include <cstddef>
#include <functional>
#include <optional>
#include <type_traits>
#include <utility>
#include <vector>

namespace acc {

/// A data set whose batches a function makes: what `collated` returns.
template <class Dataset, class Collator>
class CollatedDataset {
 public:
  using Sample = std::remove_cvref_t<decltype(std::declval<Dataset&>().get(std::size_t{0}))>;

  CollatedDataset(Dataset dataset, Collator collator)
      : dataset_(std::move(dataset)), collator_(std::move(collator)) {}

  std::optional<std::size_t> size() const { return dataset_.size(); }

  // A const one only where get is const: workers of a loader share such a data set.
  auto get_batch(c10::ArrayRef<std::size_t> indices) const
      requires requires(const Dataset& dataset, const Collator& collator) {
    std::invoke(collator, std::vector<Sample>{dataset.get(std::size_t{0})});
  }
  { return batch_of(dataset_, collator_, indices); }
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

/// The data set with `collator` instead of acc::collate, as the collate_fn of PyTorch's DataLoader and the
/// data_collator of transformers' Trainer. The collator gets the samples that `dataset.get(index)` gave, as a
/// std::vector, and returns the batch: for a Trainer a tuple or array of tensors, the labels last. It is
/// called on several threads at once when the loader has workers and it can be called while const.
template <class Dataset, class Collator>
CollatedDataset<Dataset, Collator> collated(Dataset dataset, Collator collator) {
  return {std::move(dataset), std::move(collator)};
}

}  // namespace acc
