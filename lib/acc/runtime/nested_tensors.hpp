// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ATen/core/Tensor.h>

#include <functional>
#include <ranges>
#include <tuple>
#include <type_traits>
#include <utility>

namespace acc {

/// What is done to each tensor of a structure; it may put another in its place.
using TensorAct = std::function<void(at::Tensor&)>;

namespace nested {

// Only what a user declares beside a type of his own is found under this name from here.
void for_each_tensor() = delete;

template <class Value>
void visit(Value& value, const TensorAct& act) {
  if constexpr (std::is_same_v<Value, at::Tensor>) {
    act(value);
  } else if constexpr (requires { for_each_tensor(value, act); }) {
    for_each_tensor(value, act);
  } else if constexpr (requires { std::tuple_size<Value>::value; }) {
    std::apply([&](auto&... part) { (visit(part, act), ...); }, value);
  } else if constexpr (requires {
                         value.has_value();
                         value.value();
                       }) {
    if (value.has_value()) visit(*value, act);
  } else if constexpr (requires { typename Value::mapped_type; }) {
    for (auto& [key, part] : value) visit(part, act);
  } else if constexpr (requires { value.begin()->value(); }) {
    for (auto& item : value) visit(item.value(), act);
  } else if constexpr (std::ranges::range<Value>) {
    using Part = std::ranges::range_reference_t<Value>;
    if constexpr (std::is_lvalue_reference_v<Part> && !std::is_arithmetic_v<std::remove_cvref_t<Part>>) {
      for (auto& part : value) visit(part, act);
    }
  } else if constexpr (requires { value.data; }) {
    visit(value.data, act);
    if constexpr (requires { value.target; }) visit(value.target, act);
  }
}

// By the rules of visit.
template <class Value>
constexpr bool only_tensors() {
  if constexpr (std::is_same_v<Value, at::Tensor>) {
    return true;
  } else if constexpr (requires(Value & value, const TensorAct& act) { for_each_tensor(value, act); }) {
    return true;
  } else if constexpr (requires { std::tuple_size<Value>::value; }) {
    return []<std::size_t... I>(std::index_sequence<I...> /*places*/) {
      return (only_tensors<std::tuple_element_t<I, Value>>() && ...);
    }
    (std::make_index_sequence<std::tuple_size_v<Value>>());
  } else if constexpr (requires(Value value) {
                         value.has_value();
                         value.value();
                       }) {
    return only_tensors<typename Value::value_type>();
  } else if constexpr (requires { typename Value::mapped_type; }) {
    return only_tensors<typename Value::mapped_type>();
  } else if constexpr (requires(Value value) { value.begin()->value(); }) {
    return only_tensors<std::remove_cvref_t<decltype(std::declval<Value>().begin()->value())>>();
  } else if constexpr (std::ranges::range<Value>) {
    return only_tensors<std::ranges::range_value_t<Value>>();
  } else if constexpr (requires(Value value) { value.data; }) {
    if constexpr (requires(Value value) { value.target; }) {
      return only_tensors<decltype(Value::data)>() && only_tensors<decltype(Value::target)>();
    } else {
      return only_tensors<decltype(Value::data)>();
    }
  } else {
    return false;
  }
}

struct ForEachPlace {
  template <class Value>
  void operator()(Value& value, const TensorAct& act) const {
    visit(value, act);
  }
};

struct ForEachTensor {
  template <class Value>
  void operator()(Value& value, const TensorAct& act) const {
    visit(value, [&act](at::Tensor& tensor) {
      if (tensor.defined()) act(tensor);
    });
  }
};

}  // namespace nested

/// Calls `act` for every defined tensor in `value`, in order: a tensor, or tuples, pairs, arrays, optionals,
/// vectors, maps, OrderedDicts and torch::data::Examples of such, at any depth. Other types hold none; for
/// one of your own, declare `void for_each_tensor(YourType&, const acc::TensorAct&)` in its namespace.
inline constexpr nested::ForEachTensor for_each_tensor;

/// The same, also where there is no tensor yet.
inline constexpr nested::ForEachPlace for_each_tensor_place;

/// Whether a type holds nothing but tensors. Of one with a for_each_tensor of its own that is taken for true.
template <class Value>
inline constexpr bool kOnlyTensors = nested::only_tensors<Value>();

}  // namespace acc
