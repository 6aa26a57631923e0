// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <concepts>
#include <cstring>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

namespace acc {

/// Serializes an object to send it to other processes. If the compiler reports this type as incomplete,
/// include acc/objects.hpp.
template <class T>
struct ObjectText;

template <>
struct ObjectText<std::string> {
  static std::string write(const std::string& text) { return text; }
  static std::string read(std::string_view text) { return std::string(text); }
};

template <class T>
  requires std::is_arithmetic_v<T> || std::is_enum_v<T>
struct ObjectText<T> {
  /// Serializes the value.
  static std::string write(T value) { return {reinterpret_cast<const char*>(&value), sizeof(value)}; }
  /// Reads what `write` returned.
  static T read(std::string_view text) {
    T value{};
    std::memcpy(&value, text.data(), sizeof(value));
    return value;
  }
};

namespace detail {

/// Whether objects of this type can be sent, given the included headers.
template <class T>
concept HasText = requires(const T& object, std::string_view text) {
  { ObjectText<T>::write(object) } -> std::same_as<std::string>;
  { ObjectText<T>::read(text) } -> std::same_as<T>;
};

/// A vector that gather_object takes.
template <class List>
concept ListOfObjects = requires {
  typename List::value_type;
  requires std::same_as<List, std::vector<typename List::value_type>>;
  requires HasText<typename List::value_type>;
};

}  // namespace detail

}  // namespace acc
