// SPDX-License-Identifier: Apache-2.0
#include "acc/rendezvous/rank_exchange.hpp"

#include <memory>
#include <utility>
#include <vector>

namespace acc::launcher {
namespace {

std::string role_info_key(int group_rank) {
  return "torchelastic/role_info/" + std::to_string(group_rank);
}

std::string assigned_ranks_key(int group_rank) {
  return "torchelastic/assigned_ranks/" + std::to_string(group_rank);
}

}  // namespace

RankExchange::RankExchange(const Store& store, Options options, Done done)
    : options_(std::move(options)),
      done_(std::move(done)),
      store_(store.open_again(std::chrono::steady_clock::now() + options_.timeout,
                              [this](const auto& error) { connected(error); })) {}

void RankExchange::connected(const std::optional<Error>& error) {
  if (error) return finish(error, {});
  Store::Pairs pairs = std::move(options_.first);
  for (const auto& [rank, info] : options_.own) {
    pairs.emplace_back(options_.prefix + role_info_key(rank), to_json(info, rank));
  }
  store_->multi_set(std::move(pairs));
  std::vector<std::string> keys;
  if (options_.own.contains(0)) {
    for (int rank = 0; rank < options_.group_size; ++rank) {
      keys.push_back(options_.prefix + role_info_key(rank));
    }
    store_->get_when_present(std::move(keys), options_.timeout,
                             [this](StoreOutcome outcome, const auto& infos) { assign(outcome, infos); });
  } else {
    for (const auto& [rank, info] : options_.own) keys.push_back(options_.prefix + assigned_ranks_key(rank));
    store_->get_when_present(std::move(keys), options_.timeout,
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
  Store::Pairs pairs;
  std::map<int, AssignedRanks> own;
  for (int rank = 0; rank < options_.group_size; ++rank) {
    const AssignedRanks& its = ranks.at(static_cast<std::size_t>(rank));
    pairs.emplace_back(options_.prefix + assigned_ranks_key(rank), to_json(its));
    if (options_.own.contains(rank)) own.emplace(rank, its);
  }
  const std::weak_ptr<bool> alive = alive_;
  finish({}, std::move(own));
  if (alive.expired()) return;
  store_->multi_set(std::move(pairs));
  // Its answer says that the store has taken what was sent before.
  store_->check({}, [this](StoreOutcome, bool) { store_->close(); });
}

void RankExchange::assigned(StoreOutcome outcome, const std::vector<std::string>& ranks) try {
  if (outcome != StoreOutcome::done) return fail(outcome, "the node with rank 0 has given no ranks");
  std::map<int, AssignedRanks> own;
  std::size_t at = 0;
  for (const auto& [rank, info] : options_.own) own.emplace(rank, read_assigned_ranks(ranks.at(at++)));
  store_->close();
  finish({}, std::move(own));
} catch (const Error& error) {
  finish(error, {});
}

void RankExchange::fail(StoreOutcome outcome, const std::string& missing) {
  const auto seconds = std::chrono::ceil<std::chrono::seconds>(options_.timeout).count();
  Problem problem = store_->loss();
  if (outcome == StoreOutcome::timed_out) {
    problem.what = missing + " within " + std::to_string(seconds) + " s";
    problem.hint = "look at what that node says";
  }
  finish(Error(ErrorKind::rendezvous, {problem}), {});
}

void RankExchange::finish(std::optional<Error> error, std::map<int, AssignedRanks> ranks) {
  const Done done = std::exchange(done_, {});
  if (done) done(std::move(error), std::move(ranks));
}

}  // namespace acc::launcher
