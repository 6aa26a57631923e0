// SPDX-License-Identifier: Apache-2.0
#include "outlier.hpp"

#include <algorithm>
#include <iterator>
#include <vector>

namespace acc::selftest {

std::optional<Outlier> find_outlier(std::span<const double> seconds, double factor) {
  if (seconds.size() < 2) return std::nullopt;
  const auto longest = std::ranges::max_element(seconds);
  const auto index = static_cast<std::size_t>(std::distance(seconds.begin(), longest));
  std::vector<double> others(seconds.begin(), seconds.end());
  others.erase(others.begin() + std::distance(seconds.begin(), longest));
  const auto middle = others.begin() + std::ssize(others) / 2;
  std::ranges::nth_element(others, middle);
  if (*longest <= factor * *middle) return std::nullopt;
  return Outlier{.index = index, .factor = *longest / *middle};
}

int num_rounds(int ranks) {
  return ranks % 2 == 0 ? ranks - 1 : ranks;
}

// The circle method: with one seat fixed, i and j of the others meet in round (i + j) mod rounds.
std::optional<int> partner_of(int rank, int round, int ranks) {
  const int rounds = num_rounds(ranks);
  const int fixed = rounds;  // who has no one to meet, where the number is odd
  int partner = 0;
  if (rank == fixed) {
    partner = round * ((rounds + 1) / 2) % rounds;  // half of the round
  } else {
    partner = (round - rank + rounds) % rounds;
    if (partner == rank) partner = fixed;
  }
  return partner < ranks ? std::optional(partner) : std::nullopt;
}

}  // namespace acc::selftest
