// SPDX-License-Identifier: Apache-2.0
#include "acc/config/conversion.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "acc/base/text.hpp"
#include "acc/config/value.hpp"

namespace acc::launcher {
namespace {

using Kind = DocumentNode::Kind;
using Result = std::variant<Value, Mismatch>;

std::string_view kind_name(Kind kind) {
  switch (kind) {
    case Kind::list:
      return "a list";
    case Kind::mapping:
      return "a mapping";
    case Kind::scalar:
      break;
  }
  return "a single value";
}

Mismatch wrong(const SettingSpec& spec, std::string_view wanted, const DocumentNode& node) {
  const std::string found =
      node.kind == Kind::scalar ? fmt::format("'{}'", shorten(node.text)) : std::string(kind_name(node.kind));
  return {.what = fmt::format("{} must be {}, not {}", file_key(spec), wanted, found)};
}

// YAML reads `no` as false; if the setting allows the word `no`, it means the word.
std::string text_of(const SettingSpec& spec, const DocumentNode& node) {
  if (node.quoted || node.value != false) return node.text;
  const auto no = std::ranges::find_if(spec.allowed, [](auto word) { return to_lower(word) == "no"; });
  return no == spec.allowed.end() ? node.text : std::string(*no);
}

Result text_value(const SettingSpec& spec, const DocumentNode& node) {
  const std::string text = text_of(spec, node);
  if (const auto word = allowed_word(spec, text)) return Value(*word);
  const std::vector<std::string> allowed(spec.allowed.begin(), spec.allowed.end());
  return Mismatch{.what = fmt::format("{} must be one of {}, not '{}'", file_key(spec), join(allowed, ", "),
                                      shorten(text)),
                  .hint = did_you_mean(spec.ignore_case ? to_upper(text) : text, allowed)};
}

Result integer_value(const SettingSpec& spec, const DocumentNode& node) {
  std::optional<std::int64_t> number;
  if (node.value.is_number_integer()) number = node.value.get<std::int64_t>();
  if (node.quoted) number = parse_integer(node.text);
  if (!number) return wrong(spec, "a whole number", node);
  if (const auto problem = range_problem(spec, *number))
    return Mismatch{.what = fmt::format("{} {}", file_key(spec), *problem)};
  return Value(*number);
}

Result number_value(const SettingSpec& spec, const DocumentNode& node) {
  if (node.value.is_number() && std::isfinite(node.value.get<double>()))
    return Value(node.value.get<double>());
  // In YAML 1.1 `1e-5` is text.
  if (const auto number = parse_number(node.text)) return Value(*number);
  return wrong(spec, "a number", node);
}

Result truth_value(const SettingSpec& spec, const DocumentNode& node) {
  if (node.value.is_boolean()) return node.value;
  if (const auto truth = parse_truth(node.text)) return Value(*truth);
  return wrong(spec, "true or false", node);
}

Result word_or_truth(const SettingSpec& spec, const DocumentNode& node) {
  if (node.value.is_boolean()) return node.value;
  if (const auto word = allowed_word(spec, node.text)) return Value(*word);
  if (const auto truth = parse_truth(node.text)) return Value(*truth);
  const std::vector<std::string> allowed(spec.allowed.begin(), spec.allowed.end());
  return wrong(spec, fmt::format("true, false or one of {}", join(allowed, ", ")), node);
}

Result list_value(const SettingSpec& spec, const DocumentNode& node) {
  Value list = Value::array();
  for (const DocumentNode& item : node.items) {
    if (item.kind != Kind::scalar) return wrong(spec, "a list of texts", item);
    list.push_back(item.text);
  }
  return list;
}

// Accelerate 0.34 wrote a Python tuple as text: `(false, false, true)`.
std::vector<std::string> tuple_parts(std::string_view text) {
  text = trim(text);
  if (text.starts_with('(') && text.ends_with(')')) text = text.substr(1, text.size() - 2);
  return split(text, ',');
}

Result truths_value(const SettingSpec& spec, const DocumentNode& node) {
  const std::size_t size = default_value(spec).size();
  const auto mismatch = [&] { return wrong(spec, fmt::format("a list of {} truth values", size), node); };
  Value list = Value::array();
  if (node.kind == Kind::scalar) {
    for (const std::string& part : tuple_parts(node.text)) {
      const auto truth = parse_truth(trim(part));
      if (!truth) return mismatch();
      list.push_back(*truth);
    }
  }
  for (const DocumentNode& item : node.items) {
    const auto truth = item.value.is_boolean() ? item.value.get<bool>() : parse_truth(item.text);
    if (!truth) return mismatch();
    list.push_back(*truth);
  }
  if (list.size() != size) return mismatch();
  return list;
}

}  // namespace

std::optional<std::string> range_problem(const SettingSpec& spec, std::int64_t number) {
  if (spec.min && number < *spec.min) return fmt::format("must be at least {}, not {}", *spec.min, number);
  if (spec.max && number > *spec.max) return fmt::format("must be at most {}, not {}", *spec.max, number);
  return std::nullopt;
}

bool is_number(const SettingSpec& spec) {
  return spec.type == ValueType::integer || spec.type == ValueType::number;
}

std::optional<std::string> allowed_word(const SettingSpec& spec, std::string_view text) {
  if (std::empty(spec.allowed)) return std::string(text);
  const auto found = std::ranges::find_if(spec.allowed, [&](std::string_view word) {
    return word == text || (spec.ignore_case && to_lower(word) == to_lower(text));
  });
  if (found != spec.allowed.end()) return std::string(*found);
  const auto number = spec.numbered ? parse_integer(text) : std::nullopt;
  if (!number || *number < 1 || *number > static_cast<std::int64_t>(spec.allowed.size())) return std::nullopt;
  return std::string(spec.allowed[static_cast<std::size_t>(*number - 1)]);
}

Result convert(const SettingSpec& spec, const DocumentNode& node) {
  if (node.is_null()) return Value(nullptr);
  const bool truths_as_text = spec.type == ValueType::truths && node.kind == Kind::scalar;
  const Kind wanted = spec.type == ValueType::section                                  ? Kind::mapping
                      : spec.type == ValueType::list || spec.type == ValueType::truths ? Kind::list
                                                                                       : Kind::scalar;
  if (node.kind != wanted && !truths_as_text) return wrong(spec, kind_name(wanted), node);
  if (is_number(spec) && !std::empty(spec.allowed)) {
    if (const auto word = allowed_word(spec, node.text)) return Value(*word);
  }
  switch (spec.type) {
    case ValueType::text:
      return text_value(spec, node);
    case ValueType::integer:
      return integer_value(spec, node);
    case ValueType::number:
      return number_value(spec, node);
    case ValueType::boolean:
      return truth_value(spec, node);
    case ValueType::word_or_truth:
      return word_or_truth(spec, node);
    case ValueType::list:
      return list_value(spec, node);
    case ValueType::truths:
      return truths_value(spec, node);
    case ValueType::section:
      return to_value(node);
  }
  return Value(nullptr);
}

Result convert(const SettingSpec& spec, std::string_view text) {
  DocumentNode node{.value = read_plain_scalar(text), .text = std::string(text)};
  if (spec.type == ValueType::integer) node.quoted = true;
  if (spec.type != ValueType::list || node.is_null()) return convert(spec, node);
  DocumentNode list{.kind = Kind::list};
  for (std::string& part : split(text, ',')) list.items.push_back({.text = std::move(part), .quoted = true});
  return convert(spec, list);
}

}  // namespace acc::launcher
