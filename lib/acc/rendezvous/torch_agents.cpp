// SPDX-License-Identifier: Apache-2.0
#include "acc/rendezvous/torch_agents.hpp"

#include <map>
#include <memory>
#include <nlohmann/json.hpp>
#include <utility>
#include <vector>

#include "acc/base/error.hpp"
#include "acc/base/json_number.hpp"
#include "acc/base/running_clock.hpp"

namespace acc::launcher {
namespace {

constexpr const char* kMembers = "torchelastic/agent/terminal_state/num_members";
constexpr const char* kLast = "torchelastic/agent/terminal_state/last_member";

// More workers than any job has; the sums stay far below the limits of int.
constexpr int kMaxWorkers = 1 << 20;

[[noreturn]] void refuse_json(std::string_view what, std::string_view json) {
  throw Error({.kind = ErrorKind::rendezvous,
               .what = std::string(what) + " cannot be parsed: " + std::string(json.substr(0, 200))});
}

int count(const nlohmann::json& value) {
  const auto number = whole_number<int>(value);
  if (!number || *number < 0 || *number > kMaxWorkers) throw std::out_of_range("count");
  return *number;
}

}  // namespace

std::string role_info_key(int group_rank) {
  return "torchelastic/role_info/" + std::to_string(group_rank);
}

std::string assigned_ranks_key(int group_rank) {
  return "torchelastic/assigned_ranks/" + std::to_string(group_rank);
}

std::vector<AssignedRanks> assign_ranks(const std::vector<RoleInfo>& nodes) {
  int world_size = 0;
  std::map<std::string_view, int> role_world_sizes;
  std::vector<AssignedRanks> result;
  for (const RoleInfo& node : nodes) {
    int& role_world_size = role_world_sizes[node.role];
    result.push_back({.first_rank = world_size, .first_role_rank = role_world_size});
    world_size += node.local_world_size;
    role_world_size += node.local_world_size;
  }
  for (std::size_t i = 0; i < nodes.size(); ++i) {
    result[i].world_size = world_size;
    result[i].role_world_size = role_world_sizes[nodes[i].role];
  }
  return result;
}

std::string to_json(const RoleInfo& node, int group_rank) {
  return R"({"role": )" +
         nlohmann::json(node.role).dump(-1, ' ', true, nlohmann::json::error_handler_t::replace) +
         R"(, "rank": )" + std::to_string(group_rank) + R"(, "local_world_size": )" +
         std::to_string(node.local_world_size) + "}";
}

std::string to_json(const AssignedRanks& ranks) {
  return "[" + std::to_string(ranks.first_rank) + ", " + std::to_string(ranks.world_size) + ", " +
         std::to_string(ranks.first_role_rank) + ", " + std::to_string(ranks.role_world_size) + "]";
}

RoleInfo read_role_info(std::string_view json) try {
  const auto info = nlohmann::json::parse(json);
  return {.role = info.at("role").get<std::string>(), .local_world_size = count(info.at("local_world_size"))};
} catch (const std::exception&) {
  refuse_json("the role info of a node", json);
}

AssignedRanks read_assigned_ranks(std::string_view json) try {
  const auto ranks = nlohmann::json::parse(json);
  return {.first_rank = count(ranks.at(0)),
          .world_size = count(ranks.at(1)),
          .first_role_rank = count(ranks.at(2)),
          .role_world_size = count(ranks.at(3))};
} catch (const std::exception&) {
  refuse_json("the ranks assigned by node 0", json);
}

RankExchange::RankExchange(const Store& store, Options options, OnDone on_done)
    : options_(std::move(options)),
      on_done_(std::move(on_done)),
      store_(store.open_again(RunningClock::now() + options_.timeout,
                              [this](const auto& error) { on_connected(error); })) {}

void RankExchange::on_connected(const std::optional<Error>& error) {
  if (error) return finish(error, {});
  Store::Pairs pairs = std::move(options_.first_pairs);
  for (const auto& [rank, info] : options_.own_nodes) {
    if (!options_.are_known) pairs.emplace_back(options_.prefix + role_info_key(rank), to_json(info, rank));
  }
  store_->multi_set(std::move(pairs));
  std::vector<std::string> keys;
  if (options_.own_nodes.contains(0)) {
    for (int rank = 0; rank < options_.group_size; ++rank) {
      keys.push_back(options_.prefix + role_info_key(rank));
    }
    store_->get_when_present(std::move(keys), options_.timeout,
                             [this](StoreOutcome outcome, const auto& infos) { assign(outcome, infos); });
  } else {
    for (const auto& [rank, info] : options_.own_nodes)
      keys.push_back(options_.prefix + assigned_ranks_key(rank));
    store_->get_when_present(
        std::move(keys), options_.timeout,
        [this](StoreOutcome outcome, const auto& ranks) { on_assigned(outcome, ranks); });
  }
}

void RankExchange::assign(StoreOutcome outcome, const std::vector<std::string>& infos) try {
  if (outcome != StoreOutcome::done) return fail(outcome, "not every node has reported its worker count");
  std::vector<RoleInfo> nodes;
  nodes.reserve(infos.size());
  for (const std::string& info : infos) nodes.push_back(read_role_info(info));
  publish(assign_ranks(nodes));
} catch (const Error& error) {
  finish(error, {});
}

void RankExchange::publish(const std::vector<AssignedRanks>& ranks) {
  Store::Pairs pairs;
  std::map<int, AssignedRanks> own_ranks;
  for (int rank = 0; rank < options_.group_size; ++rank) {
    const AssignedRanks& node_ranks = ranks.at(static_cast<std::size_t>(rank));
    pairs.emplace_back(options_.prefix + assigned_ranks_key(rank), to_json(node_ranks));
    if (options_.own_nodes.contains(rank)) own_ranks.emplace(rank, node_ranks);
  }
  const std::weak_ptr<bool> alive = alive_;
  finish({}, std::move(own_ranks));
  if (alive.expired()) return;
  store_->multi_set(std::move(pairs));
  // Its reply means that the store has processed what was sent before.
  store_->check({}, [this](StoreOutcome, bool) { store_->close(); });
}

void RankExchange::on_assigned(StoreOutcome outcome, const std::vector<std::string>& ranks) try {
  if (outcome != StoreOutcome::done) return fail(outcome, "the node with rank 0 has given no ranks");
  std::map<int, AssignedRanks> own_ranks;
  std::size_t index = 0;
  for (const auto& [rank, info] : options_.own_nodes)
    own_ranks.emplace(rank, read_assigned_ranks(ranks.at(index++)));
  store_->close();
  finish({}, std::move(own_ranks));
} catch (const Error& error) {
  finish(error, {});
}

void RankExchange::fail(StoreOutcome outcome, const std::string& missing) {
  const auto seconds = std::chrono::ceil<std::chrono::seconds>(options_.timeout).count();
  Problem problem = store_->loss();
  if (outcome == StoreOutcome::timed_out) {
    problem.what = missing + " within " + std::to_string(seconds) + " s";
    problem.hint = "look at the output of that node";
  }
  finish(Error(ErrorKind::rendezvous, {problem}), {});
}

void RankExchange::finish(std::optional<Error> error, std::map<int, AssignedRanks> ranks) {
  const OnDone on_done = std::exchange(on_done_, {});
  if (on_done) on_done(std::move(error), std::move(ranks));
}

ExitBarrier::ExitBarrier(const Store& store, Options options, std::function<void(bool)> on_done)
    : options_(std::move(options)),
      on_done_(std::move(on_done)),
      store_(store.open_again(RunningClock::now() + options_.timeout, [this](const auto& error) {
        if (error) return finish(false);
        on_connected();
      })) {}

void ExitBarrier::on_connected() {
  store_->add(options_.prefix + kMembers, options_.nodes, [this](StoreOutcome outcome, std::int64_t members) {
    if (outcome != StoreOutcome::done) return finish(false);
    if (members == options_.group_size) store_->set(options_.prefix + kLast, "<val_ignored>");
    store_->wait({options_.prefix + kLast}, options_.timeout,
                 [this](StoreOutcome ended) { finish(ended == StoreOutcome::done); });
  });
}

void ExitBarrier::finish(bool is_complete) {
  const auto on_done = std::exchange(on_done_, {});
  if (on_done) on_done(is_complete);
}

}  // namespace acc::launcher
