// SPDX-License-Identifier: Apache-2.0
#include "acc/runtime/trainer/named_numbers.hpp"

#include <charconv>
#include <utility>
#include <vector>

#include "acc/base/error.hpp"
#include "acc/base/text.hpp"

namespace acc::detail {

NamedNumbers NamedNumbers::parse(const std::string& text, const char* argument) {
  std::vector<std::string> pairs = split(text, ',');
  if (pairs.back().empty()) pairs.pop_back();  // no text, or a comma at its end
  std::map<std::string, double> numbers;
  for (const std::string& pair : pairs) {
    const std::size_t equals = pair.find('=');
    double value = 0;
    const char* last = pair.data() + pair.size();
    const auto parsed = equals == std::string::npos
                            ? std::from_chars_result{last, std::errc::invalid_argument}
                            : std::from_chars(pair.data() + equals + 1, last, value);
    if (parsed.ec != std::errc() || parsed.ptr != last)
      throw Error({.what = "'" + pair + "' is not name=number", .where = argument});
    numbers[pair.substr(0, equals)] = value;
  }
  return {std::move(numbers), argument};
}

double NamedNumbers::take(const std::string& name, double default_value) {
  const auto node = numbers_.extract(name);
  return node.empty() ? default_value : node.mapped();
}

void NamedNumbers::require_empty() const {
  if (numbers_.empty()) return;
  throw Error({.what = "does not take '" + numbers_.begin()->first + "'", .where = argument_});
}

}  // namespace acc::detail
