// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <concepts>
#include <functional>
#include <string>
#include <string_view>

#include "acc/runtime/checkpoint/pt_file.hpp"

namespace acc {

namespace detail {

/// Parses JSON text: objects become dicts. Throws Error{usage} for text that is not JSON.
PtValue from_json(std::string_view text);

/// Writes a value as JSON text. Values that JSON cannot represent become null: objects, numbers that are not
/// finite, and tensors of more than one element. Keys that are not strings are left out.
std::string to_json(const PtValue& value);

}  // namespace detail

/// Functions that save and load the state of an object.
struct Stateful {
  std::function<PtValue()> state = {};                  ///< Returns the state.
  std::function<void(const PtValue&)> load_state = {};  ///< Takes a state that `state` returned.
};

/// An object whose state is JSON text, such as acc's schedulers and loaders.
template <class T>
concept JsonStateful = requires(T& object, const T& constant, std::string_view text) {
  { constant.state() } -> std::convertible_to<std::string>;
  object.load_state(text);
};

/// An object whose state is a PtValue, which may contain tensors.
template <class T>
concept PtStateful = requires(T& object, const T& constant, const PtValue& value) {
  { constant.state() } -> std::same_as<PtValue>;
  object.load_state(value);
};

/// The functions for the state of `object`, which must outlive the result.
template <class T>
  requires JsonStateful<T> || PtStateful<T>
Stateful stateful(T& object) {
  if constexpr (PtStateful<T>) {
    return {.state = [&object] { return object.state(); },
            .load_state = [&object](const PtValue& value) { object.load_state(value); }};
  } else {
    return {.state = [&object] { return detail::from_json(object.state()); },
            .load_state = [&object](const PtValue& value) { object.load_state(detail::to_json(value)); }};
  }
}

}  // namespace acc
