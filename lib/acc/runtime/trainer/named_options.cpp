// SPDX-License-Identifier: Apache-2.0
#include "acc/runtime/trainer/named_options.hpp"

#include <utility>
#include <vector>

#include "acc/base/error.hpp"
#include "acc/base/text.hpp"

namespace acc::detail {

NamedOptions NamedOptions::parse(const std::string& text, const char* argument) {
  std::vector<std::string> pairs = split(text, ',');
  if (pairs.back().empty()) pairs.pop_back();  // no text, or a comma at its end
  std::map<std::string, NumberOrWord> options;
  for (const std::string& pair : pairs) {
    const std::size_t equals = pair.find('=');
    const auto value = equals == std::string::npos ? std::nullopt : parse_number(pair.substr(equals + 1));
    if (!value) throw Error({.what = "'" + pair + "' is not name=number", .where = argument});
    options[pair.substr(0, equals)] = *value;
  }
  return {std::move(options), argument};
}

std::optional<double> NamedOptions::take(const std::string& name) {
  const auto node = options_.extract(name);
  if (node.empty()) return {};
  const auto* number = std::get_if<double>(&node.mapped().value);
  if (!number) refuse(name, "'" + std::get<std::string>(node.mapped().value) + "' is not a number", {});
  return *number;
}

double NamedOptions::take(const std::string& name, double default_value, Range range) {
  const double number = take(name, default_value);
  require_in(range, number, std::string(argument_) + ": " + name);
  return number;
}

double NamedOptions::take_required(const std::string& name) {
  const std::optional<double> number = take(name);
  if (!number) throw Error({.what = "needs '" + name + "'", .where = argument_});
  return *number;
}

std::optional<std::string> NamedOptions::take_word(const std::string& name) {
  const auto node = options_.extract(name);
  if (node.empty()) return {};
  const auto* word = std::get_if<std::string>(&node.mapped().value);
  if (!word) refuse(name, "is a number", {});
  return *word;
}

void NamedOptions::refuse(const std::string& name, const std::string& what,
                          const std::vector<std::string>& values) const {
  throw Error({.what = what,
               .where = std::string(argument_) + ": " + name,
               .hint = values.empty() ? "" : "use one of " + join(values, ", ")});
}

void NamedOptions::require_empty() const {
  if (options_.empty()) return;
  throw Error({.what = "does not take '" + options_.begin()->first + "'", .where = argument_});
}

}  // namespace acc::detail
