// SPDX-License-Identifier: Apache-2.0
#include "acc/rendezvous/rank_exchange.hpp"

#include <memory>
#include <utility>
#include <vector>

namespace acc {
namespace {

std::string role_info_key(int group_rank) {
  return "torchelastic/role_info/" + std::to_string(group_rank);
}

std::string assigned_ranks_key(int group_rank) {
  return "torchelastic/assigned_ranks/" + std::to_string(group_rank);
}

}  // namespace

RankExchange::RankExchange(boost::asio::io_context& loop, Options options, Done done)
    : options_(std::move(options)), done_(std::move(done)), client_(loop) {
  client_.connect(options_.store, std::chrono::steady_clock::now() + options_.timeout, {},
                  [this](const auto& error) { connected(error); });
}

void RankExchange::connected(const std::optional<Error>& error) {
  if (error) return finish(error, {});
  StoreClient::Pairs pairs = std::move(options_.first);
  for (const auto& [rank, info] : options_.own) {
    pairs.emplace_back(options_.prefix + role_info_key(rank), to_json(info, rank));
  }
  client_.multi_set(std::move(pairs));
  std::vector<std::string> keys;
  if (options_.own.contains(0)) {
    for (int rank = 0; rank < options_.group_size; ++rank) {
      keys.push_back(options_.prefix + role_info_key(rank));
    }
    client_.get_when_present(std::move(keys), options_.timeout,
                             [this](StoreOutcome outcome, const auto& infos) { assign(outcome, infos); });
  } else {
    for (const auto& [rank, info] : options_.own) keys.push_back(options_.prefix + assigned_ranks_key(rank));
    client_.get_when_present(std::move(keys), options_.timeout,
                             [this](StoreOutcome outcome, const auto& ranks) { assigned(outcome, ranks); });
  }
}

void RankExchange::assign(StoreOutcome outcome, const std::vector<std::string>& infos) try {
  if (outcome != StoreOutcome::done) return fail(outcome, "not every node has said how many workers it runs");
  std::vector<RoleInfo> nodes;
  nodes.reserve(infos.size());
  for (const std::string& info : infos) nodes.push_back(read_role_info(info));
  publish(assign_ranks(nodes));
} catch (const Error& error) {
  finish(error, {});
}

void RankExchange::publish(const std::vector<AssignedRanks>& ranks) {
  StoreClient::Pairs pairs;
  std::map<int, AssignedRanks> own;
  for (int rank = 0; rank < options_.group_size; ++rank) {
    const AssignedRanks& its = ranks.at(static_cast<std::size_t>(rank));
    pairs.emplace_back(options_.prefix + assigned_ranks_key(rank), to_json(its));
    if (options_.own.contains(rank)) own.emplace(rank, its);
  }
  const std::weak_ptr<bool> alive = alive_;
  finish({}, std::move(own));
  if (!alive.expired()) client_.multi_set(std::move(pairs));
}

void RankExchange::assigned(StoreOutcome outcome, const std::vector<std::string>& ranks) try {
  if (outcome != StoreOutcome::done) return fail(outcome, "the node with rank 0 has given no ranks");
  std::map<int, AssignedRanks> own;
  std::size_t at = 0;
  for (const auto& [rank, info] : options_.own) own.emplace(rank, read_assigned_ranks(ranks.at(at++)));
  finish({}, std::move(own));
} catch (const Error& error) {
  finish(error, {});
}

void RankExchange::fail(StoreOutcome outcome, const std::string& missing) {
  const auto seconds = std::chrono::ceil<std::chrono::seconds>(options_.timeout).count();
  const bool timed_out = outcome == StoreOutcome::timed_out;
  finish(Error({.kind = ErrorKind::rendezvous,
                .what = timed_out ? missing + " within " + std::to_string(seconds) + " s"
                                  : "the connection to the store of the rendezvous is lost",
                .where = to_string(options_.store),
                .hint = timed_out ? "look at what that node says" : "look at the node that hosts it"}),
         {});
}

void RankExchange::finish(std::optional<Error> error, std::map<int, AssignedRanks> ranks) {
  const Done done = std::exchange(done_, {});
  if (done) done(std::move(error), std::move(ranks));
}

}  // namespace acc
