// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <concepts>
#include <cstddef>
#include <optional>
#include <vector>

#include "acc/base/error.hpp"
#include "acc/runtime/tensors/nested_tensors.hpp"

namespace acc {

namespace detail {

/// The size of the first tensor of a sample in its first dimension. Throws Error{usage} if there is none.
template <class Sample>
std::size_t sample_length(Sample sample) {
  std::optional<std::size_t> length;
  for_each_tensor(sample, [&](const at::Tensor& tensor) {
    if (!length && tensor.dim() > 0) length = static_cast<std::size_t>(tensor.size(0));
  });
  if (length) return *length;
  throw Error(
      {.what = "a sample has no tensor with a length", .where = "data set", .hint = "give it lengths()"});
}

}  // namespace detail

/// A data set that has `lengths()`, or `get(index)`, whose samples are then read for their first tensors.
template <class Dataset>
concept SizedSamples = requires(Dataset& dataset) {
  { dataset.lengths() } -> std::convertible_to<std::vector<std::size_t>>;
} || requires(Dataset& dataset) {
  dataset.size();
  dataset.get(std::size_t{0});
};

/// The length of each sample, by which a LengthGroupedSampler makes batches.
template <SizedSamples Dataset>
std::vector<std::size_t> sample_lengths(Dataset& dataset) {
  if constexpr (requires { dataset.lengths(); }) {
    return dataset.lengths();
  } else {
    const std::optional<std::size_t> size = dataset.size();
    std::vector<std::size_t> lengths;
    for (std::size_t i = 0; i < size.value_or(0); ++i)
      lengths.push_back(detail::sample_length(dataset.get(i)));
    return lengths;
  }
}

}  // namespace acc
