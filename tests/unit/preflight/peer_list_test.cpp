// SPDX-License-Identifier: Apache-2.0
#include "acc/preflight/peer_list.hpp"

#include "support/catch.hpp"

namespace peer_list_test {

using namespace acc::launcher;

namespace {

const std::string kToken(32, 't');

const std::vector<PeerAddress> kPeers = {{.rank = 0, .address = "10.0.0.1", .port = 40'000, .token = kToken},
                                         {.rank = 2, .address = "::1", .port = 65'535, .token = kToken}};

// A list of one node, one of whose values is another.
std::string list_with(const std::string& name, const std::string& value) {
  const auto field = [&](const std::string& key, const std::string& usual) {
    return "\"" + key + "\": " + (key == name ? value : usual);
  };
  return "[{" + field("rank", "1") + ", " + field("address", "\"::1\"") + ", " + field("port", "9") + ", " +
         field("token", "\"" + kToken + "\"") + "}]";
}

}  // namespace

TEST_CASE("peer_list: who takes part survives the way through the store", "[preflight]") {
  CHECK(decode_peers(encode(kPeers), 3) == kPeers);
  CHECK(decode_peers("[]", 3).empty());
  CHECK(decode_peers(list_with("", ""), 2).size() == 1);
}

TEST_CASE("peer_list: ranks that the round does not have, or twice, are refused", "[preflight]") {
  CHECK_THROWS(decode_peers(encode(kPeers), 2));
  CHECK_THROWS(decode_peers(encode(std::vector(2, kPeers[0])), 3));
  CHECK_THROWS(decode_peers(encode(std::vector{kPeers[1], kPeers[0]}), 3));
  for (const char* rank : {"-1", "-2147483648", "4294967297", "0.5", "1e300", "\"1\"", "null"}) {
    INFO(rank);
    CHECK_THROWS(decode_peers(list_with("rank", rank), 3));
  }
}

TEST_CASE("peer_list: what is no port, token or list is refused", "[preflight]") {
  CHECK_THROWS(decode_peers(list_with("port", "65536"), 3));
  CHECK_THROWS(decode_peers(list_with("token", "\"short\""), 3));
  CHECK_THROWS(decode_peers(list_with("token", "\"" + std::string(100'000, 't') + "\""), 3));
  CHECK_THROWS(decode_peers(list_with("address", "7"), 3));
  for (const char* text : {"", "{", "7", "[7]", "[[]]", "{\"rank\": 1}"}) CHECK_THROWS(decode_peers(text, 3));
}

TEST_CASE("peer_list: a token can stand in JSON", "[preflight]") {
  CHECK(is_token(kToken));
  CHECK_FALSE(is_token(std::string(31, 't') + "\xff"));
  CHECK_FALSE(is_token(std::string(31, 't') + "\n"));
  CHECK_FALSE(is_token(std::string(31, 't')));
}

TEST_CASE("peer_list: pairs of the round that cannot connect are left out of measurements", "[preflight]") {
  const RankPairs pairs = {{0, 1}, {1, 2}};
  CHECK(blocked_pairs({{.from = 1, .to = 0, .error = "refused"},
                       {.from = 0, .to = 1, .error = "refused"},
                       {.from = 1, .to = 2, .error = "refused"},
                       {.from = 0, .to = 2}},
                      3) == pairs);
  CHECK(ranks_of(pairs) == std::vector<int>{0, 1, 2});
  CHECK(decode_pairs(encode(pairs), 3) == pairs);
  CHECK_THROWS(decode_pairs(encode(pairs), 2));
  for (const char* text : {"", "7", "[7]", "[[0]]", "[[0, 1, 2]]", "[[1, 0]]", "[[1, 1]]", "[[-1, 1]]"}) {
    INFO(text);
    CHECK_THROWS(decode_pairs(text, 3));
  }
}

TEST_CASE("peer_list: a node cannot make ranks that the others then refuse", "[preflight]") {
  const std::string refused = "refused";
  CHECK(blocked_pairs({{.from = 0, .to = 3, .error = refused},
                       {.from = -1, .to = 0, .error = refused},
                       {.from = 1, .to = 1, .error = refused}},
                      3)
            .empty());
}

}  // namespace peer_list_test
