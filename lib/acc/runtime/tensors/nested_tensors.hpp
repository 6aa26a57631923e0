// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ATen/core/Tensor.h>

#include <functional>
#include <initializer_list>
#include <ranges>
#include <string>
#include <string_view>
#include <tuple>
#include <type_traits>
#include <unordered_set>
#include <utility>
#include <vector>

namespace acc {

/// A function that is called for each tensor of a structure and may replace the tensor.
using TensorFunction = std::function<void(at::Tensor&)>;

namespace detail {

namespace nested {

// Hides acc::for_each_tensor: only overloads that users declare beside their types are found from here.
void for_each_tensor() = delete;

// The kind of a type, which determines how visit treats it.
enum class Kind { tensor, custom, tuple, optional, map, dictionary, list, example, other };

template <class Value>
constexpr Kind kind_of() {
  if constexpr (std::is_same_v<Value, at::Tensor>) {
    return Kind::tensor;
  } else if constexpr (requires(Value& value, const TensorFunction& function) {
                         for_each_tensor(value, function);
                       }) {
    return Kind::custom;
  } else if constexpr (requires { std::tuple_size<Value>::value; }) {
    return Kind::tuple;
  } else if constexpr (requires(Value& value) {
                         value.has_value();
                         value.value();
                       }) {
    return Kind::optional;
  } else if constexpr (requires { typename Value::mapped_type; }) {
    return Kind::map;
  } else if constexpr (requires(Value& value) {
                         value.begin()->key();
                         value.begin()->value();
                       }) {
    return Kind::dictionary;
  } else if constexpr (std::is_convertible_v<Value, std::string_view>) {
    return Kind::other;
  } else if constexpr (std::ranges::range<Value>) {
    // A range of itself, such as a path or a JSON value, is not a list.
    return std::is_same_v<std::ranges::range_value_t<Value>, Value> ? Kind::other : Kind::list;
  } else if constexpr (requires(Value& value) { value.data; }) {
    return Kind::example;
  } else {
    return Kind::other;
  }
}

template <class Value>
inline constexpr Kind kKindOf = kind_of<std::remove_cv_t<Value>>();

template <class Value>
void visit(Value& value, const TensorFunction& function) {
  constexpr Kind kKind = kKindOf<Value>;
  if constexpr (kKind == Kind::tensor) {
    function(value);
  } else if constexpr (kKind == Kind::custom) {
    for_each_tensor(value, function);
  } else if constexpr (kKind == Kind::tuple) {
    std::apply([&](auto&... part) { (visit(part, function), ...); }, value);
  } else if constexpr (kKind == Kind::optional) {
    if (value.has_value()) visit(*value, function);
  } else if constexpr (kKind == Kind::map) {
    for (auto& [key, part] : value) visit(part, function);
  } else if constexpr (kKind == Kind::dictionary) {
    for (auto& item : value) visit(item.value(), function);
  } else if constexpr (kKind == Kind::list) {
    using Part = std::ranges::range_reference_t<Value>;
    if constexpr (std::is_lvalue_reference_v<Part> && !std::is_arithmetic_v<std::remove_cvref_t<Part>>) {
      for (auto& part : value) visit(part, function);
    }
  } else if constexpr (kKind == Kind::example) {
    visit(value.data, function);
    if constexpr (requires { value.target; }) visit(value.target, function);
  }
}

// Whether a type may contain tensors that visit does not reach.
template <class Value>
constexpr bool is_opaque() {
  constexpr Kind kKind = kKindOf<Value>;
  if constexpr (kKind == Kind::tuple) {
    return []<std::size_t... I>(std::index_sequence<I...>) {
      return (is_opaque<std::remove_cvref_t<std::tuple_element_t<I, Value>>>() || ...);
    }(std::make_index_sequence<std::tuple_size_v<Value>>());
  } else if constexpr (kKind == Kind::optional) {
    return is_opaque<std::remove_cvref_t<decltype(std::declval<Value&>().value())>>();
  } else if constexpr (kKind == Kind::map) {
    return is_opaque<typename Value::mapped_type>();
  } else if constexpr (kKind == Kind::dictionary) {
    return is_opaque<std::remove_cvref_t<decltype(std::declval<Value&>().begin()->value())>>();
  } else if constexpr (kKind == Kind::list) {
    return is_opaque<std::ranges::range_value_t<Value>>();
  } else if constexpr (kKind == Kind::other) {
    // Strings, paths, JSON and trivially copyable types contain none.
    return std::is_class_v<Value> && !std::is_trivially_copyable_v<Value> && !std::ranges::range<Value> &&
           !std::is_convertible_v<Value, std::string_view>;
  } else {
    return false;
  }
}

// Whether a type contains only tensors that can be replaced, in the same number and order on all processes.
// Optionals are excluded because one may be empty on a process, unordered maps because their order may
// differ.
template <class Value>
constexpr bool is_all_tensors() {
  constexpr Kind kKind = kKindOf<Value>;
  if constexpr (kKind == Kind::tensor) {
    return !std::is_const_v<Value>;
  } else if constexpr (kKind == Kind::tuple) {
    return []<std::size_t... I>(std::index_sequence<I...>) {
      return (is_all_tensors<std::tuple_element_t<I, Value>>() && ...);
    }(std::make_index_sequence<std::tuple_size_v<Value>>());
  } else if constexpr (kKind == Kind::map) {
    if constexpr (requires { typename Value::key_compare; }) {
      return is_all_tensors<typename Value::mapped_type>();
    } else {
      return false;
    }
  } else if constexpr (kKind == Kind::list) {
    using Part = std::ranges::range_value_t<Value>;
    return std::is_same_v<std::ranges::range_reference_t<Value>, Part&> && is_all_tensors<Part>();
  } else {
    return false;
  }
}

// What tensors a copy of a value has.
enum class TensorCopies {
  none,
  separate,  // visit can replace each of them, and the original keeps its own
  shared     // some are constant or those of the original, or there is no copy
};

// Those of a value that consists of such parts.
constexpr TensorCopies joined_copies(std::initializer_list<TensorCopies> parts) {
  TensorCopies joined = TensorCopies::none;
  for (const TensorCopies part : parts)
    if (joined != TensorCopies::shared && part != TensorCopies::none) joined = part;
  return joined;
}

template <class Map>
inline constexpr bool kHasNodes = requires { typename Map::node_type; };

template <class Value>
constexpr TensorCopies copies_in() {
  constexpr Kind kKind = kKindOf<Value>;
  if constexpr (std::is_const_v<Value> || std::is_reference_v<Value>) {
    return copies_in<std::remove_cvref_t<Value>>() == TensorCopies::none ? TensorCopies::none
                                                                         : TensorCopies::shared;
  } else if constexpr (kKind == Kind::tensor || kKind == Kind::custom) {
    return std::is_copy_constructible_v<Value> ? TensorCopies::separate : TensorCopies::shared;
  } else if constexpr (kKind == Kind::tuple) {
    return []<std::size_t... I>(std::index_sequence<I...>) {
      return joined_copies({copies_in<std::tuple_element_t<I, Value>>()...});
    }(std::make_index_sequence<std::tuple_size_v<Value>>());
  } else if constexpr (kKind == Kind::optional) {
    return copies_in<std::remove_cvref_t<decltype(std::declval<Value&>().value())>>();
  } else if constexpr (kKind == Kind::map) {
    // As a map of the standard library. A c10::Dict shares its entries with its copies.
    return joined_copies({copies_in<typename Value::mapped_type>(),
                          kHasNodes<Value> ? TensorCopies::none : TensorCopies::shared});
  } else if constexpr (kKind == Kind::dictionary) {
    using Part = decltype(std::declval<Value&>().begin()->value());
    return std::is_lvalue_reference_v<Part> ? copies_in<std::remove_reference_t<Part>>()
                                            : TensorCopies::shared;
  } else if constexpr (kKind == Kind::list) {
    using Part = std::ranges::range_value_t<Value>;
    constexpr TensorCopies kParts = copies_in<Part>();
    // The elements of a constant span are not constant: they are those of another list.
    constexpr bool kHasOwnParts = [] {
      if constexpr (std::ranges::range<const Value>) {
        return std::is_same_v<std::ranges::range_reference_t<Value>, Part&> &&
               std::is_same_v<std::ranges::range_reference_t<const Value>, const Part&>;
      } else {
        return false;
      }
    }();
    return kParts == TensorCopies::separate && !kHasOwnParts ? TensorCopies::shared : kParts;
  } else if constexpr (kKind == Kind::example) {
    constexpr TensorCopies kData = copies_in<decltype(std::declval<Value&>().data)>();
    if constexpr (requires(Value& value) { value.target; }) {
      return joined_copies({kData, copies_in<decltype(std::declval<Value&>().target)>()});
    } else {
      return kData;
    }
  } else {
    return std::is_copy_constructible_v<Value> ? TensorCopies::none : TensorCopies::shared;
  }
}

struct ForEachPlace {
  template <class Value>
  void operator()(Value& value, const TensorFunction& function) const {
    visit(value, function);
  }
};

struct ForEachTensor {
  template <class Value>
  void operator()(Value& value, const TensorFunction& function) const {
    visit(value, [&function](at::Tensor& tensor) {
      if (tensor.defined()) function(tensor);
    });
  }
};

// A key as text; that of other types is unknown.
template <class Key>
std::string key_text(const Key& key) {
  if constexpr (std::is_convertible_v<const Key&, std::string_view>) {
    return std::string(std::string_view(key));
  } else if constexpr (std::is_enum_v<Key>) {
    return std::to_string(static_cast<std::underlying_type_t<Key>>(key));
  } else if constexpr (std::is_arithmetic_v<Key>) {
    return std::to_string(key);
  } else {
    return "?";
  }
}

// Adds the texts of the parts, with commas in between.
template <class Parts, class PartText>
std::string joined(Parts& parts, const PartText& text_of) {
  std::string text;
  for (auto& part : parts) text += (text.empty() ? "" : ", ") + text_of(part);
  return text;
}

template <class Value>
std::string structure_text(const Value& value) {
  constexpr Kind kKind = kKindOf<Value>;
  if constexpr (kKind == Kind::tuple) {
    std::string text;
    const auto add = [&](const auto& part) { text += (text.empty() ? "" : ", ") + structure_text(part); };
    std::apply([&](const auto&... part) { (add(part), ...); }, value);
    return "(" + text + ")";
  } else if constexpr (kKind == Kind::map) {
    return "{" +
           joined(
               value,
               [](const auto& item) { return key_text(item.first) + ": " + structure_text(item.second); }) +
           "}";
  } else if constexpr (kKind == Kind::list) {
    return "[" + joined(value, [](const auto& part) { return structure_text(part); }) + "]";
  } else {
    return "tensor";
  }
}

}  // namespace nested

/// A structure without its values, such as `{logits: tensor, losses: [tensor, tensor]}`.
template <class Structure>
std::string structure_text(const Structure& structure) {
  return nested::structure_text(structure);
}

/// Whether values of this type may contain tensors that for_each_tensor does not find: true for an unknown
/// class and structures that contain one.
template <class Value>
inline constexpr bool kIsOpaque = nested::is_opaque<Value>();

/// Whether values of this type have tensors, and for_each_tensor can replace those of a copy while the
/// original keeps its own: not those of a span.
template <class Value>
inline constexpr bool kCopiesTensors =
    nested::copies_in<Value>() == nested::TensorCopies::separate && std::is_copy_constructible_v<Value>;

}  // namespace detail

/// Calls `function` for every defined tensor in `value`, in order. A value is a tensor, or tuples, pairs,
/// arrays, optionals, vectors, maps, OrderedDicts and torch::data::Examples of values, nested to any depth.
/// Other types are taken to contain no tensors; for a type of your own, declare `void
/// for_each_tensor(YourType&, const acc::TensorFunction&)` in its namespace.
inline constexpr detail::nested::ForEachTensor for_each_tensor;

/// Does the same, also for undefined tensors.
inline constexpr detail::nested::ForEachPlace for_each_tensor_place;

/// A structure for collective operations: a tensor, or tuples, pairs, arrays, vectors and ordered maps of
/// nothing but tensors, nested to any depth. All processes must pass the same structure.
template <class Value>
concept TensorStructure = detail::nested::is_all_tensors<std::remove_cvref_t<Value>>();

/// Returns the structure with each tensor replaced by `function(tensor)`; `function` is called in order.
template <TensorStructure Structure, class Function>
Structure map_tensors(Structure structure, const Function& function) {
  for_each_tensor_place(structure, [&function](at::Tensor& tensor) { tensor = function(tensor); });
  return structure;
}

namespace detail {

/// Removes repeated tensors and keeps the order. If a module is registered twice (tied weights), LibTorch's
/// `parameters()` lists its parameters twice, Python's once.
inline void keep_distinct(std::vector<at::Tensor>& tensors) {
  std::unordered_set<const c10::TensorImpl*> seen;
  std::erase_if(tensors,
                [&](const at::Tensor& tensor) { return !seen.insert(tensor.unsafeGetTensorImpl()).second; });
}

}  // namespace detail

}  // namespace acc
