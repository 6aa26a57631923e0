// SPDX-License-Identifier: Apache-2.0
#include "acc/runtime/comm/explain_failure.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>

#include "acc/base/lost_peer.hpp"
#include "acc/base/text.hpp"

namespace acc::detail {
namespace {

constexpr std::array<std::string_view, 5> kTimedOut = {"Timed out", "timed out", "timing out",
                                                       "Application timeout", "wait timeout after"};
// MemoryGroup's words.
constexpr std::string_view kDifferentCalls = "do not make the same calls";

template <std::size_t N>
bool contains_any(std::string_view text, const std::array<std::string_view, N>& words) {
  return std::ranges::any_of(
      words, [&](std::string_view word) { return text.find(word) != std::string_view::npos; });
}

std::string other_process(const CollectiveContext& context) {
  return context.size == 2 ? fmt::format("rank {}", 1 - context.rank) : "another process";
}

// Ranks of which the same is said.
struct RanksAt {
  std::string text = {};
  std::vector<int> ranks = {};
};

void add_rank(std::vector<RanksAt>& groups, int rank, std::string text) {
  const auto same = std::ranges::find(groups, text, &RanksAt::text);
  RanksAt& group = same == groups.end() ? groups.emplace_back(RanksAt{.text = std::move(text)}) : *same;
  group.ranks.push_back(rank);
}

// "; rank 2 is in forward; ranks 4, 5 are in backward"
std::string groups_text(const std::vector<RanksAt>& groups) {
  std::string text;
  for (const auto& [phase, ranks] : groups)
    text += fmt::format("; {} {} {}", name_ranks(ranks), ranks.size() == 1 ? "is" : "are", phase);
  return text;
}

// "; rank 2 is in forward, 3 calls behind"
std::string phases_text(const PeerReport& peers) {
  std::vector<RanksAt> groups;
  for (const auto& [rank, calls_behind, phase] : peers.late)
    add_rank(groups, rank, fmt::format("{}, {} behind", phase, pluralize(calls_behind, "call")));
  return groups_text(groups);
}

// "; rank 2 is in comparison of parameters, since 'head.weight' was frozen": those that are somewhere else
// than this one.
std::string other_phases_text(const CollectiveContext& context) {
  if (!context.peers) return "";
  const std::map<int, std::string>& phases = context.peers->phases;
  const auto local_phase = phases.find(context.rank);
  std::vector<RanksAt> groups;
  for (const auto& [rank, phase] : phases) {
    if (local_phase == phases.end() || phase != local_phase->second) add_rank(groups, rank, phase);
  }
  return groups_text(groups);
}

std::vector<int> late_ranks(const PeerReport& peers) {
  std::vector<int> ranks;
  for (const PeerReport::Late& late : peers.late) ranks.push_back(late.rank);
  return ranks;
}

std::string lost_text(std::string_view text, const CollectiveContext& context) {
  const PeerReport peers = context.peers.value_or(PeerReport());
  // A process that has answered is alive: it closed its connection because it gave up waiting for another
  // one.
  if (peers.absent.empty() && !peers.late.empty()) {
    return fmt::format("another process gave up waiting for {}{}", name_ranks(late_ranks(peers)),
                       phases_text(peers));
  }
  if (const std::string phases = other_phases_text(context); peers.absent.empty() && !phases.empty())
    return fmt::format("{} gave up{}", other_process(context), phases);
  return fmt::format("{} {}{}", peers.absent.empty() ? other_process(context) : name_ranks(peers.absent),
                     peers.absent.size() > 1 ? kWereLost : kWasLost, first_line(text));
}

std::string timeout_text(const CollectiveContext& context) {
  const PeerReport peers = context.peers.value_or(PeerReport());
  std::vector<int> ranks = late_ranks(peers);
  ranks.insert(ranks.end(), peers.absent.begin(), peers.absent.end());
  std::ranges::sort(ranks);
  return fmt::format(
      "no answer from {} within {}{}", ranks.empty() ? other_process(context) : name_ranks(ranks),
      seconds_text(context.timeout), ranks.empty() ? other_phases_text(context) : phases_text(peers));
}

}  // namespace

std::string first_line(std::string_view text) {
  text = trim(text.substr(0, text.find('\n')));
  // What NCCL's watchdog found, behind the names of its group.
  constexpr std::string_view kWatchdog = "watchdog thread terminated with exception: ";
  if (const std::size_t at = text.find(kWatchdog); at != std::string_view::npos)
    return std::string(text.substr(at + kWatchdog.size()));
  // "[/pytorch/gloo/pair.cc:547] Connection closed", "[enforce fail at device.cc:84] ifa != nullptr. Unable
  // to": the parts up to the message are positions and conditions in LibTorch's sources.
  const std::size_t end = text.find("] ");
  if (end == std::string_view::npos) return std::string(text);
  if (text.starts_with("[enforce fail at")) {
    const std::size_t condition = text.find(". ", end);
    return std::string(trim(text.substr(condition == std::string_view::npos ? end + 1 : condition + 1)));
  }
  return std::string(text.starts_with("[/") ? trim(text.substr(end + 1)) : text);
}

std::optional<Error> explain_collective_failure(std::string_view text, const CollectiveContext& context) {
  const std::string where = fmt::format("rank {}, {}", context.rank, context.doing);
  if (text.find(kDifferentCalls) != std::string_view::npos) {
    return Error({.what = first_line(text) + other_phases_text(context),
                  .where = where,
                  .hint = "every process must make the same calls in the same order"});
  }
  if (collective_names_lost_peer(text)) {
    return Error({.kind = ErrorKind::system,
                  .what = lost_text(text, context),
                  .where = where,
                  .hint = "the process that failed first reports the cause"});
  }
  if (contains_any(text, kTimedOut)) {
    return Error({.kind = ErrorKind::system,
                  .what = timeout_text(context),
                  .where = where,
                  .hint = "it hangs, or does not make the same calls in the same order; set the time with "
                          "AcceleratorOptions::process_group.timeout"});
  }
  return std::nullopt;
}

Error explain_join_failure(std::string_view text, const CollectiveContext& context, std::string_view store) {
  const std::string where = fmt::format("rank {}", context.rank);
  if (text.find("EADDRINUSE") != std::string_view::npos) {
    return Error({.kind = ErrorKind::system,
                  .what = fmt::format("{} is in use by another program", store),
                  .where = where,
                  .hint = "choose another port with --main_process_port, or 0 for a free one"});
  }
  constexpr std::string_view kNoInterface = "Unable to find address for: ";
  if (const std::size_t at = text.find(kNoInterface); at != std::string_view::npos) {
    return Error({.kind = ErrorKind::usage,
                  .what = fmt::format("{} is not a network interface with an address",
                                      first_line(text.substr(at + kNoInterface.size()))),
                  .where = "GLOO_SOCKET_IFNAME",
                  .hint = "`ip address` lists them"});
  }
  if (contains_any(text, kTimedOut)) {
    return Error(
        {.kind = ErrorKind::rendezvous,
         .what = fmt::format("did not find the other processes through the store at {} within {}: {}", store,
                             seconds_text(context.timeout), first_line(text)),
         .where = where,
         .hint = "is every process running, and can rank 0 reach the others? GLOO_SOCKET_IFNAME "
                 "names the network interface"});
  }
  if (collective_names_lost_peer(text)) {
    return Error({.kind = ErrorKind::rendezvous,
                  .what = fmt::format("another process ended before all had joined at {}: {}", store,
                                      first_line(text)),
                  .where = where,
                  .hint = "the process that failed first reports the cause"});
  }
  return Error({.kind = ErrorKind::rendezvous,
                .what = fmt::format("cannot join the job at {}: {}", store, first_line(text)),
                .where = where});
}

namespace {

// "... Parameter indices which did not receive grad for rank 1: 2 3\n ..."
std::vector<std::string> names_in(std::string_view text, const std::vector<std::string>& trained) {
  constexpr std::string_view kList = "indices which did not receive grad for rank";
  const std::size_t at = text.find(kList);
  if (at == std::string_view::npos) return {};
  std::string_view list = text.substr(at + kList.size());
  list = list.substr(0, list.find('\n'));
  list.remove_prefix(std::min(list.size(), list.find(':') + 1));

  std::vector<std::string> names;
  for (const std::string& word : split(list, ' ')) {
    const auto index = parse_integer(word);
    if (index && *index >= 0 && static_cast<std::size_t>(*index) < trained.size())
      names.push_back(trained[static_cast<std::size_t>(*index)]);
  }
  return names;
}

// LibTorch's text says with which options this happened.
std::string hint_for_unused(std::string_view text) {
  const auto says = [text](std::string_view part) { return text.find(part) != std::string_view::npos; };
  if (says("not compatible with static_graph"))
    return "set DdpOptions::find_unused_parameters instead of static_graph, or use the same parameters in "
           "each step";
  if (says("`find_unused_parameters=True` is enabled"))
    return "give backward no inputs, or all parameters on which the outputs depend";
  return "set DdpOptions::find_unused_parameters, or use every parameter in each forward, or freeze it with "
         "requires_grad_(false) before the forward";
}

}  // namespace

std::optional<Error> explain_unused_parameters(std::string_view text, const std::vector<std::string>& trained,
                                               std::string where) {
  if (text.find("Expected to have finished reduction") == std::string_view::npos) return std::nullopt;
  const std::vector<std::string> names = names_in(text, trained);
  return Error(
      {.what = fmt::format(
           "did not contribute to the last loss, so the processes cannot average their gradients: {}",
           names.empty() ? "some parameters" : fmt::format("{}", fmt::join(names, ", "))),
       .where = std::move(where),
       .hint = hint_for_unused(text)});
}

}  // namespace acc::detail
