// SPDX-License-Identifier: Apache-2.0
#include "acc/runtime/checkpoint/stateful.hpp"

#include <fmt/format.h>

#include <cmath>
#include <nlohmann/json.hpp>
#include <utility>

#include "acc/base/error.hpp"
#include "acc/base/printable.hpp"
#include "acc/base/text.hpp"

namespace acc::detail {
namespace {

// Keeps the order of an object's members.
using Json = nlohmann::ordered_json;

PtValue value_of_unsigned(std::uint64_t number) {
  if (std::in_range<std::int64_t>(number)) return static_cast<std::int64_t>(number);
  PtValue value;
  value.content = number;
  return value;
}

PtValue value_of(const Json& json) {
  switch (json.type()) {
    case Json::value_t::boolean:
      return json.get<bool>();
    case Json::value_t::number_integer:
      return json.get<std::int64_t>();
    case Json::value_t::number_unsigned:
      return value_of_unsigned(json.get<std::uint64_t>());
    case Json::value_t::number_float:
      return json.get<double>();
    case Json::value_t::string:
      return json.get<std::string>();
    case Json::value_t::array: {
      PtList list;
      for (const Json& item : json) list.push_back(value_of(item));
      return list;
    }
    case Json::value_t::object: {
      PtDict dict;
      for (const auto& [key, item] : json.items()) dict.push_back({key, value_of(item)});
      return dict;
    }
    default:
      return {};
  }
}

Json json_of(const PtValue& value);

Json array_of(const std::vector<PtValue>& items) {
  Json array = Json::array();
  for (const PtValue& item : items) array.push_back(json_of(item));
  return array;
}

Json json_of(const PtValue& value) {
  if (const auto* truth = value.get_if<bool>()) return *truth;
  if (const auto* whole = value.get_if<std::int64_t>()) return *whole;
  if (const auto* large = value.get_if<std::uint64_t>()) return *large;
  if (const auto* text = value.get_if<std::string>()) return *text;
  if (const auto* list = value.get_if<PtList>()) return array_of(*list);
  if (const auto* tuple = value.get_if<PtTuple>()) return array_of(tuple->items);
  if (const auto* dict = value.get_if<PtDict>()) {
    Json object = Json::object();
    for (const PtEntry& entry : *dict) {
      if (const auto* key = entry.key.get_if<std::string>()) object[*key] = json_of(entry.value);
    }
    return object;
  }
  const std::optional<double> number = value.number();
  return number && std::isfinite(*number) ? Json(*number) : Json();
}

}  // namespace

PtValue from_json(std::string_view text) {
  const Json json = Json::parse(text, nullptr, /*allow_exceptions=*/false);
  if (json.is_discarded()) {
    throw Error({.what = fmt::format("is not JSON: '{}'", shorten(printable(text))),
                 .where = "checkpoint state",
                 .hint = "return what nlohmann::json(value).dump() gives"});
  }
  return value_of(json);
}

std::string to_json(const PtValue& value) {
  // Replaces bytes that are not UTF-8: they must not make loading fail.
  return json_of(value).dump(-1, ' ', false, Json::error_handler_t::replace);
}

}  // namespace acc::detail
