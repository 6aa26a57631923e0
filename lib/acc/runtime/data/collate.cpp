// SPDX-License-Identifier: Apache-2.0
#include "acc/runtime/data/collate.hpp"

#include <ATen/ops/empty.h>
#include <ATen/ops/stack.h>

#include <algorithm>

namespace acc {
namespace {

template <class Number>
at::Tensor as_tensor(const std::vector<Number>& numbers, at::ScalarType type) {
  at::Tensor tensor = at::empty({static_cast<std::int64_t>(numbers.size())}, at::TensorOptions(type));
  std::copy(numbers.begin(), numbers.end(), tensor.mutable_data_ptr<Number>());
  return tensor;
}

}  // namespace

at::Tensor stack(const std::vector<at::Tensor>& tensors) {
  return at::stack(tensors);
}

at::Tensor stack(const std::vector<std::int64_t>& numbers) {
  return as_tensor(numbers, at::kLong);
}

at::Tensor stack(const std::vector<double>& numbers) {
  return as_tensor(numbers, at::kDouble);
}

}  // namespace acc
