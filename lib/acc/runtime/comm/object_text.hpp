// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <concepts>
#include <cstring>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

#include "acc/base/error.hpp"

namespace acc {

namespace detail {

/// Throws Error{usage}: bytes of another process are not an object of the type that is read here.
[[noreturn]] inline void refuse_object(const std::string& what) {
  throw Error({.what = "an object of another process " + what,
               .hint = "let all processes send and receive the same type"});
}

}  // namespace detail

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
  /// Reads what `write` returned. Throws Error{usage} for a value of another size.
  static T read(std::string_view text) {
    if (text.size() != sizeof(T))
      detail::refuse_object("has " + std::to_string(text.size()) + " bytes, and its type here has " +
                            std::to_string(sizeof(T)));
    if constexpr (std::is_same_v<T, bool>) {
      return text.front() != 0;
    } else {
      T value{};
      std::memcpy(&value, text.data(), sizeof(value));
      return value;
    }
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
