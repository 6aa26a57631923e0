// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ATen/core/Tensor.h>

#include <array>
#include <concepts>
#include <cstdint>
#include <tuple>
#include <utility>
#include <vector>

namespace acc {

namespace detail {

/// Stacks tensors along a new first dimension; integers become an int64, floating-point numbers a float64
/// tensor, truth values a bool tensor.
at::Tensor stack(const std::vector<at::Tensor>& tensors);
at::Tensor stack(const std::vector<std::int64_t>& numbers);
at::Tensor stack(const std::vector<double>& numbers);
at::Tensor stack(const std::vector<bool>& values);

template <class T>
concept Stackable = std::same_as<T, at::Tensor> || std::is_arithmetic_v<T>;

template <class T>
struct AllStackable : std::false_type {};
template <Stackable... Parts>
struct AllStackable<std::tuple<Parts...>> : std::true_type {};
template <Stackable First, Stackable Second>
struct AllStackable<std::pair<First, Second>> : std::true_type {};
template <Stackable Part, std::size_t N>
struct AllStackable<std::array<Part, N>> : std::true_type {};

/// Stacks the results of `part` for all samples.
template <class Sample, class Pick>
at::Tensor stack_column(const std::vector<Sample>& samples, Pick part) {
  using Element = std::remove_cvref_t<decltype(part(samples.front()))>;
  using Number =
      std::conditional_t<std::same_as<Element, bool>, bool,
                         std::conditional_t<std::is_floating_point_v<Element>, double, std::int64_t>>;
  std::vector<std::conditional_t<std::same_as<Element, at::Tensor>, at::Tensor, Number>> column;
  column.reserve(samples.size());
  for (const Sample& sample : samples)
    column.push_back(static_cast<typename decltype(column)::value_type>(part(sample)));
  return stack(column);
}

/// The number of rows. Throws Error{usage} unless all tensors have the same one.
std::size_t rows_of(c10::ArrayRef<at::Tensor> tensors);

}  // namespace detail

/// Stacks samples into one batch, as torch's default_collate: tensors and numbers become a tensor (whole
/// numbers of int64, others of float64, truth values of bool, as Python's), tuples of these an array of
/// stacked tensors, torch::data::Examples one Example of stacked tensors. Samples of other types are returned
/// as they are, as a vector.
template <class Sample>
auto collate(std::vector<Sample> samples) {
  if constexpr (detail::Stackable<Sample>) {
    return detail::stack_column(samples, [](const Sample& sample) { return sample; });
  } else if constexpr (detail::AllStackable<Sample>::value) {
    return [&]<std::size_t... I>(std::index_sequence<I...> /*places*/) {
      return std::array<at::Tensor, sizeof...(I)>{
          detail::stack_column(samples, [](const Sample& sample) { return std::get<I>(sample); })...};
    }(std::make_index_sequence<std::tuple_size_v<Sample>>());
  } else if constexpr (requires(Sample sample) {
                         { sample.data } -> std::same_as<at::Tensor&>;
                         { sample.target } -> std::same_as<at::Tensor&>;
                       }) {
    return Sample(detail::stack_column(samples, [](const Sample& sample) { return sample.data; }),
                  detail::stack_column(samples, [](const Sample& sample) { return sample.target; }));
  } else {
    return samples;
  }
}

/// A copy of the rows `indices` of `tensor`.
at::Tensor take_rows(const at::Tensor& tensor, c10::ArrayRef<std::size_t> indices);

/// A data set in memory: sample i is row i of each tensor. A batch is an array of tensors, so that `for
/// (auto& [images, labels] : loader)` reads two.
template <std::size_t N>
class TensorDataset {
 public:
  using Batch = std::array<at::Tensor, N>;  ///< A tensor of rows for each tensor.

  /// Throws Error{usage} unless all tensors have the same number of rows.
  template <std::convertible_to<at::Tensor>... Tensors>
  explicit TensorDataset(Tensors... tensors) : tensors_{tensors...}, size_(detail::rows_of(tensors_)) {}

  std::size_t size() const { return size_; }  ///< The number of rows.

  /// Copies of the rows.
  Batch get_batch(c10::ArrayRef<std::size_t> indices) const {
    Batch batch;
    for (std::size_t i = 0; i < N; ++i) batch[i] = take_rows(tensors_[i], indices);
    return batch;
  }

  const at::Tensor& operator[](std::size_t index) const { return tensors_[index]; }

 private:
  Batch tensors_;
  std::size_t size_;
};

template <class... Tensors>
TensorDataset(Tensors...) -> TensorDataset<sizeof...(Tensors)>;

}  // namespace acc
