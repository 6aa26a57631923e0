// SPDX-License-Identifier: Apache-2.0
#include "acc/rendezvous/c10d_round.hpp"

#include <utility>

#include "acc/base/text.hpp"

namespace acc::launcher {
namespace {

constexpr const char* kMasterAddr = "MASTER_ADDR";
constexpr const char* kMasterPort = "MASTER_PORT";

}  // namespace

C10dRound::C10dRound(StoreMeeting& meeting, const C10dBackendOptions& options, const RendezvousState& state,
                     const std::map<RendezvousNode, OwnNode>& own_nodes,
                     std::optional<C10dMaster> known_master)
    : meeting_(meeting),
      options_(options),
      number_(state.round),
      num_nodes_(static_cast<int>(state.participants.size())),
      times_have_zone_(state.times_have_zone.value_or(true)),
      master_(std::move(known_master)) {
  for (const auto& [node, rank] : state.participants) {
    if (const auto member = own_nodes.find(node); member != own_nodes.end())
      members_.emplace(static_cast<int>(rank), member->second);
  }
}

void C10dRound::start() {
  RankExchange::Options exchange_options = {
      .prefix = prefix(number_), .group_size = num_nodes_, .timeout = options_.read_timeout};
  for (const auto& [rank, node] : members_)
    exchange_options.own_nodes.emplace(rank, RoleInfo{node.role, node.local_world_size});
  if (const auto first = members_.find(0); first != members_.end()) {
    if (!times_have_zone_ && options_.agents == TorchAgents::v2_6) {
      return meeting_.fail(
          Error({.kind = ErrorKind::rendezvous,
                 .what = "the other nodes run torchrun of torch 2.4 or 2.5, which must not meet a "
                         "launcher of later rules as rank 0",
                 .where = meeting_.store.loss().where,
                 .hint = "--rdzv-conf torch_version=2.4 (or 2.5), or the static rendezvous"}));
    }
    master_ = own_master(first->second);
    exchange_options.first_pairs = {{prefix(number_) + kMasterAddr, master_->addr},
                                    {prefix(number_) + kMasterPort, std::to_string(master_->port)}};
  }
  meeting_.exchange_ranks(std::move(exchange_options), [this](const auto& ranks) {
    ranks_ = ranks;
    members_.contains(0) ? report(*master_) : find_master(number_);
  });
}

void C10dRound::end() {
  meeting_.exchange.reset();
  guard_.reset();
  stage_ = Stage::over;
}

ExitBarrier::Options C10dRound::exit_barrier() const {
  return {.prefix = prefix(number_), .group_size = num_nodes_, .nodes = static_cast<int>(members_.size())};
}

std::vector<std::string> C10dRound::rank_keys() const {
  std::vector<std::string> keys;
  for (const auto& [rank, node] : members_) {
    keys.push_back(prefix(number_) + role_info_key(rank));
    keys.push_back(prefix(number_) + assigned_ranks_key(rank));
  }
  return keys;
}

std::vector<std::string> C10dRound::master_keys() const {
  if (!members_.contains(0)) return {};
  return {prefix(number_) + kMasterAddr, prefix(number_) + kMasterPort};
}

std::string C10dRound::prefix(std::int64_t round) const {
  return "/torch.rendezvous." + options_.run_id + "." + std::to_string(round) + "/";
}

C10dMaster C10dRound::own_master(const OwnNode& node) const {
  if (options_.agents == TorchAgents::v2_5 && options_.endpoint)
    return {options_.endpoint->host, options_.endpoint->port};
  return {node.addr, node.store_port, options_.agent_serves && options_.agents != TorchAgents::v2_4};
}

// Agents of torch 2.6 and later publish the address once, in their first round.
void C10dRound::find_master(std::int64_t round) {
  meeting_.store.multi_get(
      {prefix(round) + kMasterAddr, prefix(round) + kMasterPort},
      guard_([this, round](StoreOutcome outcome, const Store::Values& values) {
        if (outcome != StoreOutcome::done || meeting_.stopped) return;
        if (values) {
          const auto port = parse_integer(values->at(1));
          if (!port || *port < 1 || *port > 65535) {
            return meeting_.fail(
                Error({.kind = ErrorKind::rendezvous,
                       .what = "rank 0's node published an invalid port: '" + values->at(1) + "'"}));
          }
          return report({values->at(0), static_cast<std::uint16_t>(*port), times_have_zone_});
        }
        if (!times_have_zone_ && options_.endpoint)
          return report({options_.endpoint->host, options_.endpoint->port});
        if (master_) return report(*master_);
        if (round > 0) return find_master(round - 1);
        meeting_.fail(
            Error({.kind = ErrorKind::rendezvous,
                   .what = "the node with rank 0 has not published the address of the workers' store",
                   .where = meeting_.store.loss().where,
                   .hint = "use torch 2.6 or later on that node, or the static rendezvous"}));
      }));
}

void C10dRound::report(const C10dMaster& master) {
  master_ = master;
  stage_ = Stage::reported;
  RendezvousBackend::Rounds rounds;
  for (const auto& [group_rank, node] : members_) {
    Round round = round_of(group_rank, num_nodes_, ranks_.at(group_rank));
    round.master_addr = master.addr;
    round.master_port = master.port;
    round.use_agent_store = master.agent_serves;
    rounds.emplace_back(node, round);
  }
  notify(meeting_.events.on_round, rounds);
}

}  // namespace acc::launcher
