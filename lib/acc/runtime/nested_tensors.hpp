// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ATen/core/Tensor.h>

#include <functional>
#include <ranges>
#include <tuple>
#include <type_traits>

namespace acc {

/// What is done to each tensor of a structure; it may put another in its place.
using TensorAct = std::function<void(at::Tensor&)>;

/// Calls `act` for every defined tensor in `value`, in order: a tensor, or tuples, pairs, arrays, optionals,
/// vectors, maps and OrderedDicts of such, at any depth. Other types hold none; for one of your own, declare
/// `void for_each_tensor(YourType&, const acc::TensorAct&)` in its namespace.
template <class Value>
void for_each_tensor(Value& value, const TensorAct& act) {
  if constexpr (std::is_same_v<Value, at::Tensor>) {
    if (value.defined()) act(value);
  } else if constexpr (requires { std::tuple_size<Value>::value; }) {
    std::apply([&](auto&... part) { (for_each_tensor(part, act), ...); }, value);
  } else if constexpr (requires {
                         value.has_value();
                         value.value();
                       }) {
    if (value.has_value()) for_each_tensor(*value, act);
  } else if constexpr (requires { typename Value::mapped_type; }) {
    for (auto& [key, part] : value) for_each_tensor(part, act);
  } else if constexpr (requires { value.begin()->value(); }) {
    for (auto& item : value) for_each_tensor(item.value(), act);
  } else if constexpr (std::ranges::range<Value>) {
    using Part = std::ranges::range_reference_t<Value>;
    if constexpr (std::is_lvalue_reference_v<Part> && !std::is_arithmetic_v<std::remove_cvref_t<Part>>) {
      for (auto& part : value) for_each_tensor(part, act);
    }
  }
}

}  // namespace acc
