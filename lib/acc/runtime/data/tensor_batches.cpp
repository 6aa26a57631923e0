// SPDX-License-Identifier: Apache-2.0
#include "acc/runtime/data/tensor_batches.hpp"

#include <ATen/ops/empty.h>
#include <ATen/ops/index_select.h>
#include <ATen/ops/stack.h>
#include <fmt/format.h>

#include <algorithm>

#include "acc/base/error.hpp"

namespace acc {
namespace {

template <class Number>
at::Tensor as_tensor(const std::vector<Number>& numbers, at::ScalarType type) {
  at::Tensor tensor = at::empty({static_cast<std::int64_t>(numbers.size())}, at::TensorOptions(type));
  std::copy(numbers.begin(), numbers.end(), tensor.mutable_data_ptr<Number>());
  return tensor;
}

}  // namespace

namespace detail {

at::Tensor stack(const std::vector<at::Tensor>& tensors) {
  return at::stack(tensors);
}

at::Tensor stack(const std::vector<std::int64_t>& numbers) {
  return as_tensor(numbers, at::kLong);
}

at::Tensor stack(const std::vector<double>& numbers) {
  return as_tensor(numbers, at::kDouble);
}

at::Tensor stack(const std::vector<bool>& values) {
  return as_tensor(values, at::kBool);
}

}  // namespace detail

namespace {

// Does what index_select does, without its overhead and its threads.
at::Tensor copy_rows(const at::Tensor& tensor, c10::ArrayRef<std::size_t> indices) {
  const auto rows = static_cast<std::size_t>(tensor.size(0));
  std::vector<std::int64_t> shape = tensor.sizes().vec();
  shape[0] = static_cast<std::int64_t>(indices.size());
  at::Tensor batch = at::empty(shape, tensor.options());
  const std::size_t bytes = rows == 0 ? 0 : tensor.nbytes() / rows;
  const auto* from = static_cast<const char*>(tensor.const_data_ptr());
  auto* to = static_cast<char*>(batch.mutable_data_ptr());
  for (const std::size_t index : indices) {
    if (index >= rows)
      throw Error({.what = fmt::format("row {1} does not exist: there are {0} rows", rows, index),
                   .where = "TensorDataset"});
    to = std::copy_n(from + index * bytes, bytes, to);
  }
  return batch;
}

}  // namespace

namespace detail {

std::size_t rows_of(c10::ArrayRef<at::Tensor> tensors) {
  const auto rows = [](const at::Tensor& tensor) { return tensor.dim() == 0 ? 0 : tensor.size(0); };
  for (const at::Tensor& tensor : tensors) {
    if (tensor.dim() > 0 && rows(tensor) == rows(tensors.front())) continue;
    throw Error({.what = fmt::format("every tensor needs the same number of rows, not {} and {}",
                                     rows(tensors.front()), rows(tensor)),
                 .where = "TensorDataset"});
  }
  return tensors.empty() ? 0 : static_cast<std::size_t>(rows(tensors.front()));
}

}  // namespace detail

at::Tensor take_rows(const at::Tensor& tensor, c10::ArrayRef<std::size_t> indices) {
  if (tensor.device().is_cpu() && tensor.is_contiguous() && !tensor.requires_grad() && !tensor.is_conj() &&
      !tensor.is_neg())
    return copy_rows(tensor, indices);
  const at::Tensor index =
      at::empty({static_cast<std::int64_t>(indices.size())}, at::TensorOptions(at::kLong));
  std::ranges::copy(indices, index.mutable_data_ptr<std::int64_t>());
  return at::index_select(tensor, 0, index);
}

}  // namespace acc
