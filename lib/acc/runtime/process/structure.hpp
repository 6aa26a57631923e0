// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ATen/core/Tensor.h>

#include <array>
#include <cstddef>
#include <map>
#include <tuple>
#include <utility>
#include <vector>

#include "acc/runtime/nested_tensors.hpp"

namespace acc {

// What collectives take beside a tensor: tuples, pairs, arrays, vectors and maps of tensors, nested as deep
// as one likes. All processes give the same structure.

template <class T>
struct IsTensorStructure : std::is_same<T, at::Tensor> {};
template <class... Parts>
struct IsTensorStructure<std::tuple<Parts...>> : std::conjunction<IsTensorStructure<Parts>...> {};
template <class First, class Second>
struct IsTensorStructure<std::pair<First, Second>>
    : std::conjunction<IsTensorStructure<First>, IsTensorStructure<Second>> {};
template <class Part, std::size_t size>
struct IsTensorStructure<std::array<Part, size>> : IsTensorStructure<Part> {};
template <class Part>
struct IsTensorStructure<std::vector<Part>> : IsTensorStructure<Part> {};
template <class Key, class Part>
struct IsTensorStructure<std::map<Key, Part>> : IsTensorStructure<Part> {};

template <class T>
concept TensorStructure = IsTensorStructure<std::remove_cvref_t<T>>::value;

/// The structure with `act(tensor)` in the place of each tensor, in order.
template <TensorStructure Structure, class Act>
Structure map_tensors(Structure structure, const Act& act) {
  for_each_tensor_place(structure, [&act](at::Tensor& tensor) { tensor = act(tensor); });
  return structure;
}

}  // namespace acc
