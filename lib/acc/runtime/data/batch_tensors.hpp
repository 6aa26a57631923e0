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

/// A batch of these tensors, as `tensors_of` gave them.
template <class Batch>
Batch batch_of(const std::vector<at::Tensor>& tensors) {
  Batch batch{};
  if constexpr (requires { batch.resize(tensors.size()); }) batch.resize(tensors.size());
  std::size_t next = 0;
  for_each_tensor_place(batch, [&](at::Tensor& tensor) { tensor = tensors.at(next++); });
  return batch;
}

}  // namespace acc
