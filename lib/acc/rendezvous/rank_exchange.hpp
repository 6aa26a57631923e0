// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <functional>
#include <map>
#include <optional>
#include <string>

#include "acc/base/error.hpp"
#include "acc/rendezvous/role_ranks.hpp"
#include "acc/store/store.hpp"

namespace acc::launcher {

/// What torchrun's agents tell each other once a round is complete: each how many workers it runs, the first
/// which ranks follow from that. It opens the store once more, since it waits, and closes it when all is
/// said; ends with this object.
class RankExchange {
 public:
  struct Options {
    /// Of all keys, as on the wire.
    std::string prefix = "/";
    int group_size = 1;
    /// Own nodes by group rank.
    std::map<int, RoleInfo> own = {};
    /// Set before anything else.
    Store::Pairs first = {};
    std::chrono::milliseconds timeout = std::chrono::seconds(60);
  };
  /// The ranks of the own nodes by group rank, or why there are none. If node 0 is an own one, the others get
  /// theirs when this has returned, and not at all when it has ended the exchange.
  using Done = std::function<void(std::optional<Error>, std::map<int, AssignedRanks>)>;

  /// Calls `done` once, from the loop.
  RankExchange(const Store& store, Options options, Done done);

 private:
  void connected(const std::optional<Error>& error);
  void assign(StoreOutcome outcome, const std::vector<std::string>& infos);
  void publish(const std::vector<AssignedRanks>& ranks);
  void assigned(StoreOutcome outcome, const std::vector<std::string>& ranks);
  void fail(StoreOutcome outcome, const std::string& missing);
  void finish(std::optional<Error> error, std::map<int, AssignedRanks> ranks);

  Options options_;
  Done done_;
  std::shared_ptr<bool> alive_ = std::make_shared<bool>(true);
  std::unique_ptr<Store> store_;
};

}  // namespace acc::launcher
