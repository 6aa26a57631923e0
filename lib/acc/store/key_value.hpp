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

/// Who has set a value.
enum class Writer : std::uint8_t {
  agent,     ///< the process of the store itself
  member,    ///< a process of the job
  stranger,  ///< somebody who need not be one
};

/// The keys and the queues of a store, as PyTorch's TCPStore keeps them: counters are decimal text, and
/// queues are a name space of their own. Values are shared with readers and never change under them.
class KeyValue {
 public:
  using Value = std::shared_ptr<const std::string>;

  /// Null when there is no such key.
  Value get(std::string_view key) const;
  void set(std::string_view key, std::string value, Writer writer = Writer::member);
  void append(std::string_view key, std::string_view bytes, Writer writer = Writer::member);
  /// True when there was such a key. A queue of that name stays.
  bool erase(std::string_view key);

  /// Adds to the number in `key` (none counts as 0) and gives the sum, wrapped at 64 bits. Absent, and
  /// nothing changed, when the value is not a number.
  std::optional<std::int64_t> add(std::string_view key, std::int64_t delta, Writer writer = Writer::member);
  /// The number in `key`, read as C++'s stoll does: blanks before and anything behind it are ignored.
  std::optional<std::int64_t> number(std::string_view key) const;

  struct Compared {
    Value now = {};  ///< what TCPStore answers: see compare_set()
    bool stored = false;
  };
  /// Stores `desired` when the key holds `expected`, or is missing and `expected` is empty. Otherwise answers
  /// what the key holds; and for a missing key TCPStore answers `expected`, as if it were there.
  Compared compare_set(std::string_view key, std::string expected, std::string desired,
                       Writer writer = Writer::member);

  std::size_t size() const { return values_.size(); }
  /// The first `max_keys` keys behind `key`, in order; from the first one on where that is absent. Valid
  /// until the next change.
  std::vector<std::string_view> keys_after(const std::optional<std::string>& key, std::size_t max_keys) const;

  /// Erases the keys and queues for which `kept` is false.
  void forget_except(const std::function<bool(std::string_view)>& kept);

  void push(std::string_view queue, std::string value, Writer writer = Writer::member);
  /// Null when the queue is empty.
  Value pop(std::string_view queue);
  std::size_t queue_length(std::string_view queue) const;

  /// For `check` and `wait`: a key, or a queue that is not empty.
  bool exists(std::string_view name) const;

  /// Whether the agent was the last to set `key`.
  bool is_agents(std::string_view key) const;
  /// What all values that strangers were the last to set take, with their keys.
  std::size_t stranger_bytes() const { return stranger_bytes_; }
  /// What a value takes with its key, about.
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

  // Ordered maps, since their cost per look-up cannot be driven up by choosing keys.
  std::map<std::string, Entry, std::less<>> values_;
  std::map<std::string, std::deque<Item>, std::less<>> queues_;
  std::size_t stranger_bytes_ = 0;
};

}  // namespace acc::launcher
