// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "acc/base/error.hpp"
#include "acc/store/store.hpp"

namespace acc::launcher {

/// What a node tells the others about its workers.
struct RoleInfo {
  std::string role = "default";
  int local_world_size = 1;

  bool operator==(const RoleInfo&) const = default;
};

/// Ranks of a node's first worker among all workers, and among those of its role.
struct AssignedRanks {
  int first_rank = 0;
  int world_size = 1;
  int first_role_rank = 0;
  int role_world_size = 1;

  bool operator==(const AssignedRanks&) const = default;
};

/// Numbers workers as torchrun does, one node after the other. `nodes` are in the order of group ranks.
std::vector<AssignedRanks> assign_ranks(const std::vector<RoleInfo>& nodes);

/// Keys of an agent's role info and of the ranks that it is given, below the prefix of the round.
std::string role_info_key(int group_rank);
std::string assigned_ranks_key(int group_rank);

/// The texts that torchrun's agents exchange, byte for byte.
std::string to_json(const RoleInfo& node, int group_rank);
std::string to_json(const AssignedRanks& ranks);

/// Throw Error{rendezvous} for anything else.
RoleInfo read_role_info(std::string_view json);
AssignedRanks read_assigned_ranks(std::string_view json);

/// The exchange of torchrun's agents once a round is complete: each tells how many workers it runs, and the
/// first one assigns ranks. Uses a connection of its own, since it waits, and closes it at the end.
/// Destroying this object cancels it.
class RankExchange {
 public:
  struct Options {
    /// Of all keys, as on the wire.
    std::string prefix = "/";
    int group_size = 1;
    /// Own nodes by group rank.
    std::map<int, RoleInfo> own_nodes = {};
    /// The store knows the own nodes already; otherwise this tells it.
    bool are_known = false;
    /// Set before anything else.
    Store::Pairs first_pairs = {};
    std::chrono::milliseconds timeout = std::chrono::seconds(60);
  };
  /// Gets the ranks of the own nodes by group rank, or an error. If node 0 is an own one, the other nodes get
  /// their ranks after this returns, and not at all if it destroys the exchange.
  using OnDone = std::function<void(std::optional<Error>, std::map<int, AssignedRanks>)>;

  /// Calls `on_done` once, from the loop.
  RankExchange(const Store& store, Options options, OnDone on_done);

 private:
  void on_connected(const std::optional<Error>& error);
  void assign(StoreOutcome outcome, const std::vector<std::string>& infos);
  void publish(const std::vector<AssignedRanks>& ranks);
  void on_assigned(StoreOutcome outcome, const std::vector<std::string>& ranks);
  void fail(StoreOutcome outcome, const std::string& missing);
  void finish(std::optional<Error> error, std::map<int, AssignedRanks> ranks);

  Options options_;
  OnDone on_done_;
  std::shared_ptr<bool> alive_ = std::make_shared<bool>(true);
  std::unique_ptr<Store> store_;
};

/// torchrun's exit barrier: nodes whose workers have succeeded wait until those of all have. Uses a
/// connection of its own, since it waits. Destroying this object cancels it.
class ExitBarrier {
 public:
  struct Options {
    /// Of all keys, as on the wire.
    std::string prefix = "/";
    int group_size = 1;
    /// How many nodes of the group this object stands for.
    int nodes = 1;
    std::chrono::milliseconds timeout = std::chrono::seconds(300);
  };

  /// Calls `on_done` once, from the loop: true when all nodes came in time.
  ExitBarrier(const Store& store, Options options, std::function<void(bool is_complete)> on_done);

 private:
  void on_connected();
  void finish(bool is_complete);

  Options options_;
  std::function<void(bool)> on_done_;
  std::unique_ptr<Store> store_;
};

}  // namespace acc::launcher
