// SPDX-License-Identifier: Apache-2.0
#include "acc/store/key_value.hpp"

#include <algorithm>
#include <charconv>
#include <system_error>
#include <utility>

namespace acc::launcher {
namespace {

std::optional<std::int64_t> leading_number(std::string_view text) {
  text.remove_prefix(std::min(text.find_first_not_of(" \t\n\v\f\r"), text.size()));
  // from_chars accepts no plus sign; "+-1" must not become -1.
  if (text.starts_with('+') && !text.starts_with("+-")) text.remove_prefix(1);
  std::int64_t value = 0;
  const auto result = std::from_chars(text.data(), text.data() + text.size(), value);
  if (result.ec != std::errc()) return std::nullopt;
  return value;
}

}  // namespace

KeyValue::Value KeyValue::get(std::string_view key) const {
  const auto found = values_.find(key);
  return found == values_.end() ? nullptr : found->second.value;
}

void KeyValue::set(std::string_view key, std::string value, Writer writer) {
  auto entry = values_.find(key);
  if (entry == values_.end()) {
    entry = values_.try_emplace(std::string(key)).first;
  } else {
    discount(key, *entry->second.value, entry->second.writer);
  }
  entry->second = {std::make_shared<std::string>(std::move(value)), writer};
  count(key, *entry->second.value, writer);
}

void KeyValue::append(std::string_view key, std::string_view bytes, Writer writer) {
  const auto found = values_.find(key);
  if (found == values_.end()) return set(key, std::string(bytes), writer);
  Entry& entry = found->second;
  discount(key, *entry.value, entry.writer);
  // The old value may still be being sent to a client.
  if (entry.value.use_count() > 1) entry.value = std::make_shared<std::string>(*entry.value);
  entry.value->append(bytes);
  entry.writer = writer;
  count(key, *entry.value, writer);
}

bool KeyValue::erase(std::string_view key) {
  const auto found = values_.find(key);
  if (found == values_.end()) return false;
  discount(key, *found->second.value, found->second.writer);
  values_.erase(found);
  return true;
}

std::optional<std::int64_t> KeyValue::add(std::string_view key, std::int64_t delta, Writer writer) {
  const auto found = values_.find(key);
  const auto old = found == values_.end() ? 0 : leading_number(*found->second.value);
  if (!old) return std::nullopt;
  // Unsigned, because a client may choose numbers whose sum overflows.
  const auto sum =
      static_cast<std::int64_t>(static_cast<std::uint64_t>(*old) + static_cast<std::uint64_t>(delta));
  set(key, std::to_string(sum), writer);
  return sum;
}

std::optional<std::int64_t> KeyValue::number(std::string_view key) const {
  const Value value = get(key);
  return value ? leading_number(*value) : std::nullopt;
}

KeyValue::Compared KeyValue::compare_set(std::string_view key, std::string expected, std::string desired,
                                         Writer writer) {
  const Value current = get(key);
  if (current ? *current == expected : expected.empty()) {
    set(key, std::move(desired), writer);
    return {get(key), true};
  }
  return {current ? current : std::make_shared<const std::string>(std::move(expected)), false};
}

std::vector<std::string_view> KeyValue::keys_after(const std::optional<std::string>& key,
                                                   std::size_t max_keys) const {
  std::vector<std::string_view> names;
  for (auto next = key ? values_.upper_bound(*key) : values_.begin();
       next != values_.end() && names.size() < max_keys; ++next) {
    names.emplace_back(next->first);
  }
  return names;
}

void KeyValue::forget_except(const std::function<bool(std::string_view)>& kept) {
  std::erase_if(values_, [&](const auto& entry) {
    if (kept(entry.first)) return false;
    discount(entry.first, *entry.second.value, entry.second.writer);
    return true;
  });
  std::erase_if(queues_, [&](const auto& entry) {
    if (kept(entry.first)) return false;
    for (const Item& item : entry.second) discount(entry.first, *item.value, item.writer);
    return true;
  });
}

void KeyValue::push(std::string_view queue, std::string value, Writer writer) {
  auto found = queues_.find(queue);
  if (found == queues_.end()) found = queues_.try_emplace(std::string(queue)).first;
  count(queue, value, writer);
  found->second.push_back({std::make_shared<const std::string>(std::move(value)), writer});
}

KeyValue::Value KeyValue::pop(std::string_view queue) {
  const auto entry = queues_.find(queue);
  if (entry == queues_.end()) return nullptr;
  const Item first = std::move(entry->second.front());
  discount(queue, *first.value, first.writer);
  entry->second.pop_front();
  if (entry->second.empty()) queues_.erase(entry);
  return first.value;
}

std::size_t KeyValue::queue_length(std::string_view queue) const {
  const auto found = queues_.find(queue);
  return found == queues_.end() ? 0 : found->second.size();
}

bool KeyValue::exists(std::string_view name) const {
  return values_.contains(name) || queues_.contains(name);
}

bool KeyValue::is_agents(std::string_view key) const {
  const auto found = values_.find(key);
  return found != values_.end() && found->second.writer == Writer::agent;
}

std::size_t KeyValue::cost(std::string_view key, std::size_t value_bytes) {
  constexpr std::size_t kEntryBytes = 192;  // map nodes and strings
  return key.size() + value_bytes + kEntryBytes;
}

void KeyValue::count(std::string_view key, const std::string& value, Writer writer) {
  if (writer == Writer::stranger) stranger_bytes_ += cost(key, value.size());
}

void KeyValue::discount(std::string_view key, const std::string& value, Writer writer) {
  if (writer == Writer::stranger) stranger_bytes_ -= cost(key, value.size());
}

}  // namespace acc::launcher
