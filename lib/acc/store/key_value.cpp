// SPDX-License-Identifier: Apache-2.0
#include "acc/store/key_value.hpp"

#include <algorithm>
#include <charconv>
#include <system_error>
#include <utility>

namespace acc {
namespace {

std::optional<std::int64_t> leading_number(std::string_view text) {
  text.remove_prefix(std::min(text.find_first_not_of(" \t\n\v\f\r"), text.size()));
  // from_chars knows no plus; behind one it must not meet a minus.
  if (text.starts_with('+') && !text.starts_with("+-")) text.remove_prefix(1);
  std::int64_t value = 0;
  const auto result = std::from_chars(text.data(), text.data() + text.size(), value);
  if (result.ec != std::errc()) return std::nullopt;
  return value;
}

}  // namespace

KeyValue::Value KeyValue::get(std::string_view key) const {
  const auto found = values_.find(key);
  return found == values_.end() ? nullptr : found->second;
}

void KeyValue::set(std::string_view key, std::string value) {
  auto stored = std::make_shared<std::string>(std::move(value));
  const auto found = values_.find(key);
  if (found != values_.end()) {
    found->second = std::move(stored);
  } else {
    values_.emplace(key, std::move(stored));
  }
}

void KeyValue::append(std::string_view key, std::string_view bytes) {
  const auto found = values_.find(key);
  if (found == values_.end()) {
    set(key, std::string(bytes));
  } else if (found->second.use_count() == 1) {
    found->second->append(bytes);
  } else {
    // Somebody is still being sent the old value.
    found->second = std::make_shared<std::string>(*found->second);
    found->second->append(bytes);
  }
}

bool KeyValue::erase(std::string_view key) {
  const auto found = values_.find(key);
  if (found == values_.end()) return false;
  values_.erase(found);
  return true;
}

std::optional<std::int64_t> KeyValue::add(std::string_view key, std::int64_t delta) {
  const auto found = values_.find(key);
  const auto old = found == values_.end() ? 0 : leading_number(*found->second);
  if (!old) return std::nullopt;
  // Unsigned, because a client may choose numbers whose sum overflows.
  const auto sum =
      static_cast<std::int64_t>(static_cast<std::uint64_t>(*old) + static_cast<std::uint64_t>(delta));
  set(key, std::to_string(sum));
  return sum;
}

std::optional<std::int64_t> KeyValue::number(std::string_view key) const {
  const Value value = get(key);
  return value ? leading_number(*value) : std::nullopt;
}

KeyValue::Compared KeyValue::compare_set(std::string_view key, std::string expected, std::string desired) {
  const Value current = get(key);
  if (current ? *current == expected : expected.empty()) {
    set(key, std::move(desired));
    return {get(key), true};
  }
  return {current ? current : std::make_shared<const std::string>(std::move(expected)), false};
}

std::vector<std::string_view> KeyValue::keys() const {
  std::vector<std::string_view> names;
  names.reserve(values_.size());
  for (const auto& [key, value] : values_) names.emplace_back(key);
  return names;
}

void KeyValue::forget_except(const std::function<bool(std::string_view)>& kept) {
  std::erase_if(values_, [&](const auto& entry) { return !kept(entry.first); });
  std::erase_if(queues_, [&](const auto& entry) { return !kept(entry.first); });
}

void KeyValue::push(std::string_view queue, std::string value) {
  auto found = queues_.find(queue);
  if (found == queues_.end()) found = queues_.try_emplace(std::string(queue)).first;
  found->second.push_back(std::make_shared<const std::string>(std::move(value)));
}

KeyValue::Value KeyValue::pop(std::string_view queue) {
  const auto found = queues_.find(queue);
  if (found == queues_.end()) return nullptr;
  Value first = std::move(found->second.front());
  found->second.pop_front();
  if (found->second.empty()) queues_.erase(found);
  return first;
}

std::size_t KeyValue::queue_length(std::string_view queue) const {
  const auto found = queues_.find(queue);
  return found == queues_.end() ? 0 : found->second.size();
}

bool KeyValue::exists(std::string_view name) const {
  return values_.contains(name) || queues_.contains(name);
}

}  // namespace acc
