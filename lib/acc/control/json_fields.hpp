// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <concepts>
#include <nlohmann/json.hpp>

#include "acc/base/json_number.hpp"

namespace acc::launcher {

/// A field that holds a whole number. It converts to the type that is initialized with it, and throws
/// nlohmann::json::exception where it is none of that type: the library would convert it without a word.
class WholeNumber {
 public:
  explicit WholeNumber(const nlohmann::json& value) : value_(value) {}

  template <std::integral Number>
  operator Number() const {  // NOLINT(google-explicit-constructor): that is its purpose
    const auto number = whole_number<Number>(value_);
    return number ? *number : nlohmann::json().get<Number>();
  }

 private:
  const nlohmann::json& value_;
};

/// The same for a field that may be missing, and is `default_value` then.
inline int whole_number_in(const nlohmann::json& object, const char* name, int default_value) {
  const auto field = object.find(name);
  return field == object.end() ? default_value : static_cast<int>(WholeNumber(*field));
}

}  // namespace acc::launcher
