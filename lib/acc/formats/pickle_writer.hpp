// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace acc {

/// Writes a Python pickle of protocol 2 or 4, in the order of its stack machine.
class PickleWriter {
 public:
  PickleWriter() : PickleWriter(4) {}
  explicit PickleWriter(int protocol);

  void none();
  void boolean(bool value);
  void integer(std::int64_t value);
  void unsigned_integer(std::uint64_t value);
  void real(double value);
  void text(std::string_view utf8);
  /// At most 255 bytes, and not in protocol 2.
  void bytes(std::string_view bytes);
  void class_name(std::string_view module, std::string_view name);

  void empty_tuple();
  void empty_list();
  void empty_dict();
  void empty_set();
  /// MARK: begins the items that tuple_of_marked() or a fill_*() ends.
  void mark();
  void tuple_of_marked();
  void fill_list();
  void fill_dict();
  void fill_set();
  /// A tuple of the last `size` values, at most three.
  void tuple(int size);
  /// An object of the class and the argument tuple before it: by __new__, or by a call.
  void new_object();
  void call();
  /// The object outside of the pickle whose id was written before.
  void persistent();
  /// BUILD: sets the state of the object from the dict before it.
  void build();

  /// Memoizes the last value; returns its number in the memo.
  std::uint32_t memoize();
  void get_memo(std::uint32_t number);

  /// The whole pickle; nothing can be written after it.
  std::string finish();

 private:
  void put(std::uint8_t opcode) { bytes_ += static_cast<char>(opcode); }
  void put_number(std::uint64_t number, int size);

  int protocol_;
  std::string bytes_ = {};
  std::uint32_t remembered_ = 0;
};

}  // namespace acc
