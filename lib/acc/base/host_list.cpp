// SPDX-License-Identifier: Apache-2.0
#include "acc/base/host_list.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <cstdint>
#include <limits>
#include <optional>

#include "acc/base/error.hpp"
#include "acc/base/text.hpp"

namespace acc {
namespace {

// More than any cluster has, and longer than any name with a user: a malformed list must not fill the memory.
constexpr std::size_t kMaxHosts = 200'000;
constexpr std::size_t kMaxNameBytes = 400;
constexpr std::size_t kMaxBytes = std::size_t{16} << 20U;  // of all names, which are copied on the way

[[noreturn]] void refuse_list(std::string_view list, std::string_view where, const std::string& reason) {
  throw Error({.what = fmt::format("'{}' {}", shorten(list), reason), .where = std::string(where)});
}

void require_bounded(std::size_t hosts, std::size_t bytes, std::string_view list, std::string_view where) {
  if (hosts > kMaxHosts || bytes > kMaxBytes) refuse_list(list, where, "names too many hosts");
}

std::optional<std::int64_t> parse_digits(std::string_view text) {
  const bool digits = !text.empty() && text.size() <= 18 &&
                      std::ranges::all_of(text, [](unsigned char c) { return std::isdigit(c) != 0; });
  return digits ? parse_integer(text) : std::nullopt;
}

// Splits at commas outside of brackets.
std::vector<std::string> split_items(std::string_view list) {
  std::vector<std::string> items(1);
  bool inside = false;
  for (const char c : list) {
    if (c == '[') inside = true;
    if (c == ']') inside = false;
    if (c == ',' && !inside) {
      items.emplace_back();
    } else {
      items.back() += c;
    }
  }
  return items;
}

// The numbers between two brackets, as text with their padding: `1,09-11` is 1 09 10 11.
std::vector<std::string> expand_ranges(std::string_view ranges, std::string_view list,
                                       std::string_view where) {
  std::vector<std::string> numbers;
  for (const std::string& range : split(ranges, ',')) {
    const std::size_t dash = range.find('-');
    const std::string first = range.substr(0, dash);
    const auto low = parse_digits(first);
    const auto high = dash == std::string::npos ? low : parse_digits(range.substr(dash + 1));
    if (!low || !high || *high < *low)
      refuse_list(list, where, fmt::format("has no range of numbers in '{}'", shorten(range)));
    if (static_cast<std::uint64_t>(*high - *low) >= kMaxHosts - numbers.size())
      refuse_list(list, where, "names too many hosts");
    for (std::int64_t number = *low; number <= *high; ++number)
      numbers.push_back(fmt::format("{:0{}}", number, first.size()));
  }
  return numbers;
}

std::vector<std::string> expand_item(std::string_view item, std::string_view list, std::string_view where) {
  std::vector<std::string> names = {""};
  while (!item.empty()) {
    const std::size_t open = item.find('[');
    const std::string_view part = item.substr(0, open);
    if (names.front().size() + part.size() > kMaxNameBytes)
      refuse_list(list, where, "has a name that is too long");
    require_bounded(names.size(), names.size() * (names.front().size() + part.size()), list, where);
    for (std::string& name : names) name += part;
    if (open == std::string_view::npos) break;
    const std::size_t close = item.find(']', open);
    if (close == std::string_view::npos) refuse_list(list, where, "has a bracket that is not closed");
    const std::vector<std::string> numbers =
        expand_ranges(item.substr(open + 1, close - open - 1), list, where);
    const std::size_t count = names.size() * numbers.size();
    require_bounded(count, count * (names.front().size() + numbers.front().size()), list, where);
    std::vector<std::string> longer;
    longer.reserve(count);
    for (const std::string& name : names) {
      for (const std::string& number : numbers) longer.push_back(name + number);
    }
    names = std::move(longer);
    item.remove_prefix(close + 1);
  }
  return names;
}

}  // namespace

std::vector<std::string> expand_host_list(std::string_view list, std::string_view where) {
  std::vector<std::string> hosts;
  std::size_t bytes = 0;
  for (const std::string& item : split_items(list)) {
    const std::string_view name = trim(item);
    if (name.empty()) continue;
    for (std::string& host : expand_item(name, list, where)) {
      bytes += host.size();
      hosts.push_back(std::move(host));
    }
    require_bounded(hosts.size(), bytes, list, where);
  }
  return hosts;
}

std::vector<int> expand_counts(std::string_view list, std::string_view where) {
  std::vector<int> counts;
  for (const std::string& item : split(list, ',')) {
    const std::size_t open = item.find("(x");
    const bool repeats = open != std::string::npos && item.ends_with(')');
    const auto count = parse_digits(item.substr(0, open));
    const auto times =
        repeats ? parse_digits(std::string_view(item).substr(open + 2, item.size() - open - 3)) : 1;
    const bool valid = count && times && *count <= std::numeric_limits<int>::max() && *times >= 1 &&
                       repeats == (open != std::string::npos);
    if (!valid) refuse_list(list, where, fmt::format("has no count in '{}'", shorten(item)));
    if (static_cast<std::uint64_t>(*times) + counts.size() > kMaxHosts)
      refuse_list(list, where, "has too many counts");
    counts.insert(counts.end(), static_cast<std::size_t>(*times), static_cast<int>(*count));
  }
  return counts;
}

}  // namespace acc
