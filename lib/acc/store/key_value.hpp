// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace acc::launcher {

/// The class of the process that has set a value.
enum class Writer : std::uint8_t {
  agent,     ///< the process of the store itself
  member,    ///< a process of the job
  stranger,  ///< a client that need not be of the job
};

/// The keys and queues of a store, as in PyTorch's TCPStore: counters are decimal text, and queues have their
/// own namespace. Values are shared with readers, and are immutable while shared.
class KeyValue {
 public:
  using Value = std::shared_ptr<const std::string>;

  /// Null if there is no such key.
  Value get(std::string_view key) const;
  void set(std::string_view key, std::string value, Writer writer = Writer::member);
  void append(std::string_view key, std::string_view bytes, Writer writer = Writer::member);
  /// Returns whether there was such a key. A queue of that name stays.
  bool erase(std::string_view key);

  /// Adds to the number in `key` (a missing one is 0) and returns the sum, wrapped at 64 bits. Absent if the
  /// value is not a number, which is then unchanged.
  std::optional<std::int64_t> add(std::string_view key, std::int64_t delta, Writer writer = Writer::member);
  /// The number in `key`, parsed as by std::stoll: leading blanks and any suffix are ignored.
  std::optional<std::int64_t> number(std::string_view key) const;

  struct Compared {
    Value now = {};  ///< what TCPStore answers: see compare_set()
    bool stored = false;
  };
  /// Stores `desired` if the key holds `expected`, or is missing and `expected` is empty. Otherwise returns
  /// what the key holds, or for a missing key `expected`, as TCPStore does.
  Compared compare_set(std::string_view key, std::string expected, std::string desired,
                       Writer writer = Writer::member);

  std::size_t size() const { return values_.size(); }
  /// Up to `max_keys` keys after `key`, or from the first one, in order. Valid until the next change.
  std::vector<std::string_view> keys_after(const std::optional<std::string>& key, std::size_t max_keys) const;

  /// Erases the keys and queues for which `kept` is false.
  void forget_except(const std::function<bool(std::string_view)>& kept);

  void push(std::string_view queue, std::string value, Writer writer = Writer::member);
  /// Null when the queue is empty.
  Value pop(std::string_view queue);
  std::size_t queue_length(std::string_view queue) const;

  /// Whether `check` and `wait` see `name`: a key, or a queue that is not empty.
  bool exists(std::string_view name) const;

  /// Whether the agent has set `key` last.
  bool is_agents(std::string_view key) const;
  /// Memory of all keys and values that strangers have set last.
  std::size_t stranger_bytes() const { return stranger_bytes_; }
  /// Approximate memory of a key and its value.
  static std::size_t cost(std::string_view key, std::size_t value_bytes);

 private:
  struct Entry {
    std::shared_ptr<std::string> value = {};
    Writer writer = Writer::member;
  };
  struct Item {
    Value value = {};
    Writer writer = Writer::member;
  };

  void count(std::string_view key, const std::string& value, Writer writer);
  void discount(std::string_view key, const std::string& value, Writer writer);

  // Ordered maps: no choice of keys can make their look-ups slow.
  std::map<std::string, Entry, std::less<>> values_;
  std::map<std::string, std::deque<Item>, std::less<>> queues_;
  std::size_t stranger_bytes_ = 0;
};

}  // namespace acc::launcher
