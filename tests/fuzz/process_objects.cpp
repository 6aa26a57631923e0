// SPDX-License-Identifier: Apache-2.0
// Objects that processes send each other, as those of gather_object: bytes are a JSON value, which is the
// same when it is sent on, or are refused; so are those that become a program's own types.
#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "acc/runtime/comm/objects.hpp"
#include "fuzz/promise.hpp"

namespace {

using acc::ObjectText;
using nlohmann::json;

std::string text_of(const json& value) {
  return value.dump(-1, ' ', false, json::error_handler_t::replace);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view text = fuzz::text_of(data, size);
  fuzz::value_or_error([&] { return ObjectText<std::vector<std::vector<int>>>::read(text); });
  fuzz::value_or_error([&] { return ObjectText<std::map<std::string, double>>::read(text); });
  const auto value = fuzz::value_or_error([&] { return ObjectText<json>::read(text); });
  if (!value) return 0;
  const auto again = ObjectText<json>::read(ObjectText<json>::write(*value));
  fuzz::require(text_of(again) == text_of(*value), "an object is the same when it is sent on", text);
  return 0;
}
