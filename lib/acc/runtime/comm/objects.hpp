// SPDX-License-Identifier: Apache-2.0
// Lets gather_object, broadcast_object and dispatch_batches send any type that nlohmann's JSON library can
// convert.
#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

#include "acc/base/cbor_nesting.hpp"
#include "acc/runtime/comm/object_text.hpp"

namespace acc {

namespace detail {

template <class T>
concept JsonValue =
    !std::is_arithmetic_v<T> && !std::is_enum_v<T> && requires(const T& object, const nlohmann::json& json) {
      nlohmann::json(object);
      json.get<T>();
    };

}  // namespace detail

/// Serializes objects as CBOR, which keeps numbers exactly, including those that JSON text cannot represent.
template <detail::JsonValue T>
struct ObjectText<T> {
  static std::string write(const T& object) {
    const std::vector<std::uint8_t> bytes = nlohmann::json::to_cbor(nlohmann::json(object));
    return {bytes.begin(), bytes.end()};
  }
  /// Reads what `write` returned. Throws Error{usage} for anything that is not of this type.
  static T read(std::string_view text) {
    if (is_deeply_nested_cbor(text)) detail::refuse_object("is nested too deeply");
    try {
      return nlohmann::json::from_cbor(text.begin(), text.end()).template get<T>();
    } catch (const nlohmann::json::exception& error) {
      detail::refuse_object(std::string("is not of the type here: ") + error.what());
    }
  }
};

}  // namespace acc
