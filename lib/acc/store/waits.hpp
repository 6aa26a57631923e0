// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <list>
#include <map>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

namespace acc::launcher {

/// Identifies one connection of a store.
using ClientId = std::uint64_t;

/// The waits of a store's clients. A client has one wait at a time; a new one replaces the old. Adding and
/// removing a key take constant time however many clients wait, and long cancelled waits are cleaned up in
/// pieces, so that no call takes long.
class Waits {
 public:
  /// `client` begins to wait for keys that add() gives; it is not woken before all_added().
  void begin(ClientId client);
  /// `key`, which does not exist now, is one of them.
  void add(ClientId client, const std::string& key);
  /// All keys were added: `client` is woken when each of them has existed at some time. Returns true if it
  /// need not wait.
  bool all_added(ClientId client);

  /// `client` is woken when the counter in `key` reaches `world_size`.
  void block(ClientId client, const std::string& key, std::int64_t world_size);

  /// Cancels the wait of `client`; it will not be woken.
  void cancel(ClientId client);

  /// `key` exists now: serves all clients that wait for it.
  void appeared(std::string_view key);

  /// A value was pushed to `queue`: serves the client that has waited longest; it has the turn to pop.
  void pushed(std::string_view queue);

  /// The counter in `key` is `count` now: wakes clients blocked for at most that many.
  void counted(std::string_view key, std::int64_t count);
  bool anyone_blocked(std::string_view key) const { return blocked_.contains(key); }

  /// Ends the turns of `client` and returns their queues. A queue that it did not pop is for the next client:
  /// otherwise one that ends between wake-up and pop would leave the others waiting for a queue that has
  /// values.
  std::vector<std::string> end_turns(ClientId client);

  /// Clients whose turn it is to pop `queue`.
  std::size_t turns(std::string_view queue) const;

  /// Clients woken since the last call, in order; some may have left since they were woken.
  std::vector<ClientId> take_woken();

  /// Removes up to `max_keys` keys of cancelled waits. Returns whether there are more.
  bool sweep(std::size_t max_keys);

  /// Number of waiting clients.
  std::size_t size() const { return current_.size(); }
  /// Approximate memory of the wait of `client`.
  std::size_t cost(ClientId client) const;

 private:
  using WaitId = std::uint64_t;
  /// One key of one wait, in the list of all waits for that key.
  struct Entry {
    WaitId wait = 0;
    std::size_t index = 0;  // in the wait's keys
  };
  using Entries = std::map<std::string, std::list<Entry>, std::less<>>;
  struct Key {
    Entries::iterator name = {};
    std::list<Entry>::iterator entry = {};
    bool served = false;  // the iterators are invalid
  };
  struct Wait {
    ClientId client = 0;
    std::vector<Key> keys = {};
    std::size_t missing = 0;
    std::size_t cost = 0;
    bool complete = false;  // all its keys were added
    bool cancelled = false;
    std::string counter = {};  // of a barrier
  };
  struct Blocked {
    WaitId wait = 0;
    std::int64_t world_size = 0;
  };

  Wait& make(ClientId client);
  void serve(const Entry& entry);
  void wake(WaitId id);

  std::unordered_map<WaitId, Wait> waits_;
  std::unordered_map<ClientId, WaitId> current_;
  std::deque<WaitId> cancelled_;
  Entries by_key_;  // each list in order of arrival
  std::map<std::string, std::vector<Blocked>, std::less<>> blocked_;
  std::unordered_map<ClientId, std::vector<std::string>> turns_;
  std::map<std::string, std::size_t, std::less<>> turns_by_queue_;
  std::vector<ClientId> woken_;
  WaitId next_id_ = 0;
};

}  // namespace acc::launcher
