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

/// One connection of a store, for as long as it lives.
using ClientId = std::uint64_t;

/// The waits of a store's clients. A client has one wait at a time; a new one replaces the old. Adding and
/// removing a key take constant time however many clients wait, and long cancelled waits are cleaned up in
/// pieces, so that no call takes long.
class Waits {
 public:
  /// `client` begins to wait for keys that add() names; it is not woken before all_added().
  void begin(ClientId client);
  /// `key`, which does not exist now, is one of them.
  void add(ClientId client, const std::string& key);
  /// From now on `client` is woken when each of its keys has come to exist, be it one after the other. True:
  /// they have already, or there was none, and it does not wait.
  bool all_added(ClientId client);

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

  /// Forgets up to `max_keys` keys of waits that were cancelled. True: there are more.
  bool sweep(std::size_t max_keys);

  /// Clients that wait.
  std::size_t size() const { return current_.size(); }
  /// Memory that the wait of `client` takes, about.
  std::size_t cost(ClientId client) const;

 private:
  using WaitId = std::uint64_t;
  /// One key of one wait, in the list of all who wait for that key.
  struct Entry {
    WaitId wait = 0;
    std::size_t place = 0;  // in the wait's keys
  };
  using Entries = std::map<std::string, std::list<Entry>, std::less<>>;
  struct Key {
    Entries::iterator name = {};
    std::list<Entry>::iterator entry = {};
    bool served = false;  // the iterators are of no use any more
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
