// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

namespace acc {

/// One connection of a store, for as long as it lives.
using ClientId = std::uint64_t;

/// Who waits for what in a store. A client waits for one thing at a time: a new wait takes the place of the
/// old.
class Waits {
 public:
  /// `client` is woken when each of `missing` has come to exist, be it one after the other. None of them
  /// exists now, and there is at least one.
  void wait(ClientId client, std::vector<std::string> missing);

  /// `client` is woken when the counter in `key` reaches `world_size`.
  void block(ClientId client, const std::string& key, std::int64_t world_size);

  /// `client` waits no more; it will not be woken.
  void cancel(ClientId client);

  /// `key` exists: all who wait for it are served.
  void appeared(std::string_view key);

  /// A value was pushed to `queue`: who has waited for it longest is served, and has the turn to pop.
  void pushed(std::string_view queue);

  /// The counter in `key` is `count` now: those blocked for that many or fewer are woken.
  void counted(std::string_view key, std::int64_t count);
  bool anyone_blocked(std::string_view key) const { return blocked_.contains(key); }

  /// Ends the turns of `client` and names their queues. One that it did not pop is for the next to pop: else
  /// a client that dies or gives up between wake-up and pop leaves the others waiting beside a full queue.
  std::vector<std::string> end_turns(ClientId client);

  /// Clients whose turn it is to pop `queue`.
  std::size_t turns(std::string_view queue) const;

  /// Those woken since the last call, in order.
  std::vector<ClientId> take_woken();

  /// Clients that wait.
  std::size_t size() const { return waiting_.size(); }

 private:
  struct Wait {
    std::vector<std::string> keys = {};  // sorted; those already served included
    std::size_t missing = 0;
    bool for_count = false;
  };
  struct Blocked {
    ClientId client = 0;
    std::int64_t world_size = 0;
  };

  void serve(ClientId client);

  std::unordered_map<ClientId, Wait> waiting_;
  std::map<std::string, std::vector<ClientId>, std::less<>> by_key_;  // in order of arrival
  std::map<std::string, std::vector<Blocked>, std::less<>> blocked_;
  std::unordered_map<ClientId, std::vector<std::string>> turns_;
  std::map<std::string, std::size_t, std::less<>> turns_by_queue_;
  std::vector<ClientId> woken_;
};

}  // namespace acc
