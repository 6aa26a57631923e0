// SPDX-License-Identifier: Apache-2.0
#include "acc/preflight/peer_list.hpp"

#include <algorithm>
#include <stdexcept>

#include "acc/preflight/node_json.hpp"

namespace acc::launcher {
namespace {

void require(bool holds, const char* what) {
  if (!holds) throw std::invalid_argument(what);
}

bool is_pair(std::pair<int, int> ranks, int num_nodes) {
  return 0 <= ranks.first && ranks.first < ranks.second && ranks.second < num_nodes;
}

Json peer_to_json(const PeerAddress& peer) {
  return {{"rank", peer.rank}, {"address", peer.address}, {"port", peer.port}, {"token", peer.token}};
}

PeerAddress peer_from_json(const Json& object) {
  return {.rank = exact_number<int>(object.at("rank")),
          .address = object.at("address"),
          .port = exact_number<std::uint16_t>(object.at("port")),
          .token = object.at("token")};
}

}  // namespace

bool is_token(std::string_view text) {
  return text.size() == kTokenSize && std::ranges::all_of(text, [](char c) { return c > ' ' && c < '\x7f'; });
}

RankPairs blocked_pairs(const std::vector<ConnectionCheck>& connections, int num_nodes) {
  RankPairs blocked;
  for (const ConnectionCheck& one : connections) {
    const std::pair<int, int> ranks = std::minmax(one.from, one.to);
    if (!one.error.empty() && is_pair(ranks, num_nodes)) blocked.insert(ranks);
  }
  return blocked;
}

std::vector<int> ranks_of(const RankPairs& pairs) {
  std::set<int> ranks;
  for (const auto& [one, other] : pairs) ranks.insert({one, other});
  return {ranks.begin(), ranks.end()};
}

std::string encode(const std::vector<PeerAddress>& peers) {
  Json list = Json::array();
  for (const PeerAddress& peer : peers) list.push_back(peer_to_json(peer));
  return to_text(list);
}

std::string encode(const RankPairs& pairs) {
  return to_text(Json(pairs));
}

std::vector<PeerAddress> decode_peers(std::string_view text, int num_nodes) {
  std::vector<PeerAddress> peers;
  int next_rank = 0;
  for (const Json& object : Json::parse(text)) {
    const PeerAddress& peer = peers.emplace_back(peer_from_json(object));
    require(peer.rank >= next_rank && peer.rank < num_nodes, "not a rank of this round, or not the next");
    require(is_token(peer.token), "not a token");
    next_rank = peer.rank + 1;
  }
  return peers;
}

RankPairs decode_pairs(std::string_view text, int num_nodes) {
  RankPairs pairs;
  for (const Json& pair : Json::parse(text)) {
    require(pair.is_array() && pair.size() == 2, "not a pair");
    const std::pair ranks(exact_number<int>(pair[0]), exact_number<int>(pair[1]));
    require(is_pair(ranks, num_nodes), "not two ranks of this round");
    pairs.insert(ranks);
  }
  return pairs;
}

}  // namespace acc::launcher
