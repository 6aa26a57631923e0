// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ATen/core/Tensor.h>

#include <concepts>
#include <cstddef>
#include <ranges>
#include <tuple>
#include <vector>

namespace acc {

/// Calls `visit` with each tensor of a batch, in order: the batch may be a tensor, a tuple or array, a
/// torch::data::Example, a range, and these inside of each other. What is no tensor is passed over.
template <class Batch, class Visit>
void for_each_tensor(Batch& batch, Visit&& visit) {
  if constexpr (std::same_as<Batch, at::Tensor>) {
    visit(batch);
  } else if constexpr (requires {
                         batch.data;
                         batch.target;
                       }) {
    for_each_tensor(batch.data, visit);
    for_each_tensor(batch.target, visit);
  } else if constexpr (requires { std::tuple_size<Batch>::value; }) {
    std::apply([&](auto&... parts) { (for_each_tensor(parts, visit), ...); }, batch);
  } else if constexpr (requires { batch.data; } && !std::ranges::range<Batch>) {
    for_each_tensor(batch.data, visit);
  } else if constexpr (std::ranges::range<Batch>) {
    using Part = std::ranges::range_value_t<Batch>;
    if constexpr (!std::is_arithmetic_v<Part>) {
      for (auto& part : batch) for_each_tensor(part, visit);
    }
  }
}

template <class Batch>
std::vector<at::Tensor> tensors_of(Batch& batch) {
  std::vector<at::Tensor> tensors;
  for_each_tensor(batch, [&](at::Tensor& tensor) { tensors.push_back(tensor); });
  return tensors;
}

/// A batch of these tensors, as `tensors_of` gave them.
template <class Batch>
Batch batch_of(const std::vector<at::Tensor>& tensors) {
  Batch batch{};
  if constexpr (requires { batch.resize(tensors.size()); }) batch.resize(tensors.size());
  std::size_t next = 0;
  for_each_tensor(batch, [&](at::Tensor& tensor) { tensor = tensors.at(next++); });
  return batch;
}

}  // namespace acc
