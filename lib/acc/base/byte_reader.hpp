// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>
#include <type_traits>

namespace acc {

/// Reads what a process of the same program wrote, from the front: numbers as this machine has them, and
/// texts. All throw Error{system} if there are fewer bytes.
class ByteReader {
 public:
  /// `where` stands in errors: for whom the bytes are.
  ByteReader(std::string_view bytes, std::string_view where) : bytes_(bytes), where_(where) {}

  bool is_at_end() const { return bytes_.empty(); }  ///< Nothing is left.

  /// So many bytes.
  std::string_view take(std::size_t size);

  /// What is left.
  std::string_view take_rest() { return take(bytes_.size()); }

  /// What append_number() wrote.
  template <class Number>
    requires std::is_arithmetic_v<Number>
  Number number() {
    Number value = {};
    std::memcpy(&value, take(sizeof value).data(), sizeof value);
    return value;
  }

  /// What append_text() wrote.
  std::string_view text() { return take(number<std::uint64_t>()); }

  /// A number of items, each of at least `item_size` bytes, that follow.
  std::size_t count(std::size_t item_size);

  /// Throws: the bytes are not what was written.
  [[noreturn]] void fail() const;

 private:
  std::string_view bytes_;
  std::string_view where_;
};

/// Appends the bytes of a number.
template <class Number>
  requires std::is_arithmetic_v<Number>
void append_number(std::string& bytes, Number value) {
  bytes.append(reinterpret_cast<const char*>(&value), sizeof value);
}

/// Appends a text and its length.
void append_text(std::string& bytes, std::string_view text);

}  // namespace acc
