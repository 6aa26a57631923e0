// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "acc/preflight/node_health.hpp"

namespace acc::launcher {

/// Where a node answers the probes of others, and the token that it answers to.
struct PeerAddress {
  int rank = 0;
  std::string address = {};
  std::uint16_t port = 0;
  std::string token = {};

  bool operator==(const PeerAddress&) const = default;
};

/// The characters of a token.
inline constexpr std::size_t kTokenSize = 32;

/// Whether a text can be the token of a node: it stands in JSON and at the front of a connection.
bool is_token(std::string_view text);

/// Two ranks, the lower first.
using RankPairs = std::set<std::pair<int, int>>;

/// The pairs of nodes one of which cannot connect to the other. What is said of ranks that the round does not
/// have is left out.
RankPairs blocked_pairs(const std::vector<ConnectionCheck>& connections, int num_nodes);

/// The ranks in them, in their order, each once.
std::vector<int> ranks_of(const RankPairs& pairs);

/// What rank 0 publishes in the store of the job: who takes part, in the order of ranks, which of them need
/// not try to measure with each other, and which measure once more. The readers throw std::exception unless
/// it is a list of nodes of a round of `num_nodes`, or of pairs of them.
std::string encode(const std::vector<PeerAddress>& peers);
std::string encode(const RankPairs& pairs);
std::vector<PeerAddress> decode_peers(std::string_view text, int num_nodes);
RankPairs decode_pairs(std::string_view text, int num_nodes);

}  // namespace acc::launcher
