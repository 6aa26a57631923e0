// SPDX-License-Identifier: Apache-2.0
#include "acc/plan/streams.hpp"

#include <limits>
#include <optional>

#include "acc/base/error.hpp"
#include "acc/base/text.hpp"

namespace acc::launcher {
namespace {

std::optional<Streams> parse_streams(std::string_view text) {
  if (text.size() != 1 || text.front() < '0' || text.front() > '3') return std::nullopt;
  return static_cast<Streams>(text.front() - '0');
}

std::optional<int> parse_rank(std::string_view text) {
  const auto rank = parse_integer(text);
  if (!rank || *rank < 0 || *rank > std::numeric_limits<int>::max()) return std::nullopt;
  return static_cast<int>(*rank);
}

}  // namespace

StreamMap parse_stream_map(std::string_view text, const std::string& where) {
  if (const auto all = parse_streams(trim(text))) return {.otherwise = *all};
  StreamMap map;
  for (const std::string& entry : split(text, ',')) {
    const std::size_t colon = entry.find(':');
    const auto rank = colon == std::string::npos ? std::nullopt : parse_rank(entry.substr(0, colon));
    const auto streams =
        colon == std::string::npos ? std::nullopt : parse_streams(trim(entry.substr(colon + 1)));
    if (!rank || !streams) {
      throw Error({.what = "'" + std::string(text) + "' is neither 0, 1, 2 or 3 nor a list RANK:N",
                   .where = where,
                   .hint = "0 none, 1 stdout, 2 stderr, 3 both; as in 3 or 0:3,1:2"});
    }
    map.of_rank[*rank] = *streams;
  }
  return map;
}

std::vector<int> parse_ranks(std::string_view text, const std::string& where) {
  constexpr int kMostRanks = 1 << 20;
  std::vector<int> ranks;
  if (trim(text).empty()) return ranks;
  for (const std::string& entry : split(text, ',')) {
    const std::size_t dash = entry.find('-');
    const auto first = parse_rank(entry.substr(0, dash));
    const auto last = dash == std::string::npos ? first : parse_rank(entry.substr(dash + 1));
    if (!first || !last || *last < *first || *last - *first >= kMostRanks)
      throw Error({.what = "'" + entry + "' is not a rank", .where = where, .hint = "as in 0,2,5 or 0-3"});
    for (int rank = *first; rank <= *last; ++rank) ranks.push_back(rank);
  }
  return ranks;
}

std::vector<std::string> parse_words(std::string_view text) {
  std::vector<std::string> words(1);
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] != ',') {
      words.back() += text[i];
    } else if (text.substr(i + 1).starts_with(',')) {
      words.back() += text[i++];
    } else {
      words.emplace_back();
    }
  }
  std::erase(words, "");
  return words;
}

}  // namespace acc::launcher
