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

namespace acc {

/// The keys and the queues of a store, as PyTorch's TCPStore keeps them: counters are decimal text, and
/// queues are a name space of their own. Values are shared with readers and never change under them.
class KeyValue {
 public:
  using Value = std::shared_ptr<const std::string>;

  /// Null when there is no such key.
  Value get(std::string_view key) const;
  void set(std::string_view key, std::string value);
  void append(std::string_view key, std::string_view bytes);
  /// True when there was such a key. A queue of that name stays.
  bool erase(std::string_view key);

  /// Adds to the number in `key` (none counts as 0) and gives the sum, wrapped at 64 bits. Absent, and
  /// nothing changed, when the value is not a number.
  std::optional<std::int64_t> add(std::string_view key, std::int64_t delta);
  /// The number in `key`, read as C++'s stoll does: blanks before and anything behind it are ignored.
  std::optional<std::int64_t> number(std::string_view key) const;

  struct Compared {
    Value now = {};  ///< what TCPStore answers: see compare_set()
    bool stored = false;
  };
  /// Stores `desired` when the key holds `expected`, or is missing and `expected` is empty. Otherwise answers
  /// what the key holds; and for a missing key TCPStore answers `expected`, as if it were there.
  Compared compare_set(std::string_view key, std::string expected, std::string desired);

  std::size_t size() const { return values_.size(); }
  /// In order. Valid until the next change.
  std::vector<std::string_view> keys() const;

  /// Erases the keys and queues for which `kept` is false.
  void forget_except(const std::function<bool(std::string_view)>& kept);

  void push(std::string_view queue, std::string value);
  /// Null when the queue is empty.
  Value pop(std::string_view queue);
  std::size_t queue_length(std::string_view queue) const;

  /// For `check` and `wait`: a key, or a queue that is not empty.
  bool exists(std::string_view name) const;

 private:
  // Ordered maps, since their cost per look-up cannot be driven up by choosing keys.
  std::map<std::string, std::shared_ptr<std::string>, std::less<>> values_;
  std::map<std::string, std::deque<Value>, std::less<>> queues_;
};

}  // namespace acc
