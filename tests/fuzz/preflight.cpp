// SPDX-License-Identifier: Apache-2.0
// What nodes tell each other in the checks of --preflight, each line a text that one of them has published:
// it is read, or refused with an exception, as is promised there; what was read is the same when it is sent
// on, can be judged together, and the table and the findings can be shown. Who is listed as a node, or as one
// that cannot connect, is one of the round.
#include <exception>
#include <iterator>

#include "acc/base/text.hpp"
#include "acc/preflight/judgement.hpp"
#include "acc/preflight/node_check.hpp"
#include "acc/preflight/node_health.hpp"
#include "acc/preflight/node_json.hpp"
#include "acc/preflight/peer_list.hpp"
#include "acc/preflight/report.hpp"
#include "acc/preflight/schedule.hpp"
#include "fuzz/promise.hpp"

namespace {

using namespace acc::launcher;

// Of the round whose lists are read.
constexpr int kNodes = 5;

/// What `decode` reads of the text; absent: it refuses it.
template <typename Decode>
auto readable(const std::string& line, const Decode& decode) -> std::optional<decltype(decode(line))> {
  try {
    return decode(line);
  } catch (const std::exception&) {
    return std::nullopt;
  }
}

template <typename Value>
void add(const std::string& line, std::vector<Value> (*decode)(std::string_view),
         std::vector<Value>& values) {
  const auto read = readable(line, decode);
  if (!read) return;
  fuzz::require(decode(encode(*read)) == *read, "a list is the same when it is sent on", line);
  values.insert(values.end(), read->begin(), read->end());
}

// Of a round of so many nodes.
void check_lists(const std::string& line, int num_nodes) {
  if (const auto peers =
          readable(line, [&](std::string_view text) { return decode_peers(text, num_nodes); })) {
    fuzz::require(decode_peers(encode(*peers), num_nodes) == *peers, "peers are the same when sent on", line);
    fuzz::require(std::ssize(*peers) <= num_nodes, "a peer is a node", line);
    fuzz::require(peers->empty() || peers->back().rank < num_nodes, "a peer has a rank", line);
  }
  if (const auto pairs =
          readable(line, [&](std::string_view text) { return decode_pairs(text, num_nodes); })) {
    fuzz::require(decode_pairs(encode(*pairs), num_nodes) == *pairs, "pairs are the same when sent on", line);
    make_schedule(num_nodes, *pairs);
  }
}

// As it comes to the process that shows it.
void check_shown(const std::vector<Finding>& findings, const std::string& text, int num_nodes) {
  const NodeCheckResult result = decode_result(
      encode(NodeCheckResult{.passed = false, .summary = refusal_text(findings, num_nodes), .text = text}));
  fuzz::require(result.text == acc::printable(result.text), "a table moves no cursor", result.text);
  fuzz::require(result.summary == acc::printable(result.summary), "a line moves no cursor", result.summary);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  Observations seen{.num_nodes = 0};
  std::vector<Finding> told;
  for (const std::string& line : acc::split(fuzz::text_of(data, size), '\n')) {
    // A node of another rank than its own does not take part.
    if (const auto node = readable(line, decode_health); node && node->rank == seen.num_nodes) {
      fuzz::require(to_json(decode_health(encode(*node))) == to_json(*node),
                    "a node is the same when it is sent on", line);
      seen.nodes.push_back(*node);
      ++seen.num_nodes;
    }
    add(line, decode_connections, seen.connections);
    add(line, decode_transfers, seen.transfers);
    add(line, decode_findings, told);
    check_lists(line, kNodes);
    if (const auto result = readable(line, decode_result))
      fuzz::require(encode(decode_result(encode(*result))) == encode(*result),
                    "a result is the same when it is sent on", line);
  }
  // One of which nothing is known.
  seen.silent = {seen.num_nodes++};
  const std::vector<Finding> findings = judge(seen);
  fuzz::require(has_errors(findings), "a node that is silent is an error");
  const RankPairs blocked = blocked_pairs(seen.connections, seen.num_nodes);
  fuzz::require(decode_pairs(encode(blocked), seen.num_nodes) == blocked, "rank 0 publishes what is read");
  const RankPairs slow = slow_pairs(seen);
  fuzz::require(decode_pairs(encode(slow), seen.num_nodes) == slow, "rank 0 publishes what is read");
  fuzz::require(decode_findings(encode(findings)) == findings, "findings are the same when they are sent on");
  check_shown(findings, preflight_text(seen, findings), seen.num_nodes);
  check_shown(told, findings_text(told), seen.num_nodes);
  fuzz::require(Json::parse(preflight_json(seen, findings)).at("num_nodes") == seen.num_nodes,
                "programs get JSON");
  return 0;
}
