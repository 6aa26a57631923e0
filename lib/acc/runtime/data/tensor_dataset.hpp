// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ATen/core/Tensor.h>

#include <array>
#include <concepts>

namespace acc {

/// Throws Error{usage} unless all tensors have the same number of rows; returns it.
std::size_t rows_of(c10::ArrayRef<at::Tensor> tensors);

/// The rows `indices` of `tensor`, stacked.
at::Tensor take_rows(const at::Tensor& tensor, c10::ArrayRef<std::size_t> indices);

/// A data set that is in memory: sample i is row i of each tensor. A batch is an array of stacked rows, so
/// `for (auto& [images, labels] : loader)` reads two.
template <std::size_t N>
class TensorDataset {
 public:
  using Batch = std::array<at::Tensor, N>;

  /// Throws Error{usage} unless all have the same number of rows.
  template <std::convertible_to<at::Tensor>... Tensors>
  explicit TensorDataset(Tensors... tensors) : tensors_{tensors...}, size_(rows_of(tensors_)) {}

  std::size_t size() const { return size_; }

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
