// SPDX-License-Identifier: Apache-2.0
#include "acc/store/stranger_memory.hpp"

#include <algorithm>
#include <tuple>

namespace acc::launcher {
namespace {

// More than what an agent waits with.
constexpr std::size_t kMuch = std::size_t{16} << 10U;

}  // namespace

std::vector<StrangerMemory::Id> StrangerMemory::hold(Id id, std::size_t bytes) {
  if (bytes == 0) {
    release(id);
    return {};
  }
  Holding& holding = holdings_[id];
  total_ += bytes - holding.bytes;
  holding.bytes = bytes;
  if (bytes <= kMuch) {
    holding.since = 0;
  } else if (holding.since == 0) {
    holding.since = ++now_;
  }
  std::vector<Id> ended;
  while (total_ > max_bytes_) {
    ended.push_back(first_to_go());
    release(ended.back());
  }
  return ended;
}

void StrangerMemory::release(Id id) {
  const auto node = holdings_.extract(id);
  if (node) total_ -= node.mapped().bytes;
}

StrangerMemory::Id StrangerMemory::first_to_go() const {
  const auto goes_before = [](const auto& one, const auto& other) {
    const auto rank = [](const Holding& holding) {
      const bool much = holding.since > 0;
      return std::tuple(!much, much ? holding.since : 0, SIZE_MAX - holding.bytes);
    };
    return rank(one.second) < rank(other.second);
  };
  return std::ranges::min_element(holdings_, goes_before)->first;
}

}  // namespace acc::launcher
