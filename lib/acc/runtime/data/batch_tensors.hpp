// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ATen/core/Tensor.h>

#include <cstddef>
#include <vector>

#include "acc/runtime/nested_tensors.hpp"

namespace acc {

/// The tensors of a batch, in the order of for_each_tensor_place.
template <class Batch>
std::vector<at::Tensor> tensors_of(Batch& batch) {
  std::vector<at::Tensor> tensors;
  for_each_tensor_place(batch, [&](at::Tensor& tensor) { tensors.push_back(tensor); });
  return tensors;
}

/// A batch with as many places for tensors, if its type alone can tell where they are.
template <class Batch>
Batch empty_batch(std::size_t num_tensors) {
  Batch batch{};
  if constexpr (requires { batch.resize(num_tensors); }) batch.resize(num_tensors);
  return batch;
}

/// Whether `batch_of` makes of `tensors_of(batch)` all that a batch held: not a map's keys, nor texts.
template <class Batch>
bool is_all_tensors(std::size_t num_tensors) {
  if (!kOnlyTensors<Batch>) return false;
  auto batch = empty_batch<Batch>(num_tensors);
  return tensors_of(batch).size() == num_tensors;
}

/// A batch of these tensors, as `tensors_of` gave them.
template <class Batch>
Batch batch_of(const std::vector<at::Tensor>& tensors) {
  auto batch = empty_batch<Batch>(tensors.size());
  std::size_t next = 0;
  for_each_tensor_place(batch, [&](at::Tensor& tensor) { tensor = tensors.at(next++); });
  return batch;
}

}  // namespace acc
