// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace acc {

/// Writes a Python pickle of protocol 2 or 4, one value after another as its stack machine takes them.
class PickleWriter {
 public:
  PickleWriter() : PickleWriter(4) {}
  explicit PickleWriter(int protocol);

  void none();
  void boolean(bool value);
  void integer(std::int64_t value);
  void real(double value);
  void text(std::string_view utf8);
  /// At most 255 bytes, and not in protocol 2.
  void bytes(std::string_view bytes);
  void class_name(std::string_view module, std::string_view name);

  void empty_tuple();
  void empty_list();
  void empty_dict();
  void empty_set();
  /// Opens the items that tuple_of_marked() or a fill ends.
  void mark();
  void tuple_of_marked();
  void fill_list();
  void fill_dict();
  void fill_set();
  /// Of the last `size` values, at most three.
  void tuple(int size);
  /// An object of the class and the tuple before it: without __init__, or by a call.
  void new_object();
  void call();
  /// What is kept beside the pickle under the id before it.
  void persistent();
  /// Gives the object its members from the dict before it.
  void build();

  /// The number under which the value written last can be had again.
  std::uint32_t remember();
  void again(std::uint32_t number);

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
