// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <concepts>
#include <nlohmann/json.hpp>
#include <optional>
#include <stdexcept>
#include <string>

#include "acc/base/json_number.hpp"
#include "acc/preflight/node_health.hpp"

namespace acc::launcher {

using Json = nlohmann::ordered_json;

/// As in `acc test --nodes --json` and in the store of the job.
Json to_json(const NodeHealth& node);
Json to_json(const ConnectionCheck& connection);
Json to_json(const Transfer& transfer);

template <typename Value>
Json or_null(const std::optional<Value>& value) {
  return value ? Json(*value) : Json();
}

/// Throws std::exception if the value is not a whole number that `Number` can hold.
template <std::integral Number>
Number exact_number(const Json& value) {
  if (const auto number = whole_number<Number>(value)) return *number;
  throw std::out_of_range("not a number of this kind");
}

/// One line; what is not UTF-8 is replaced.
std::string to_text(const Json& json);

}  // namespace acc::launcher
