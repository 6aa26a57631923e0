// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <bit>
#include <cstdint>
#include <string>
#include <string_view>

namespace acc {

/// The lowest bytes of `number`, little end first.
inline void append_little_endian(std::string& out, std::uint64_t number, int bytes) {
  for (int i = 0; i < bytes; ++i) out += static_cast<char>(number >> (8 * i) & 0xffU);
}

/// The bytes of a protobuf message, field by field (https://protobuf.dev/programming-guides/encoding). Fields
/// that have their type's default may be left out.
class Protobuf {
 public:
  Protobuf& number(int field, std::int64_t value) {
    tag(field, 0);
    varint(static_cast<std::uint64_t>(value));
    return *this;
  }
  Protobuf& number(int field, double value) {
    tag(field, 1);
    append_little_endian(bytes_, std::bit_cast<std::uint64_t>(value), 8);
    return *this;
  }
  Protobuf& number(int field, float value) {
    tag(field, 5);
    append_little_endian(bytes_, std::bit_cast<std::uint32_t>(value), 4);
    return *this;
  }
  /// Text, bytes or another message.
  Protobuf& bytes(int field, std::string_view value) {
    tag(field, 2);
    varint(value.size());
    bytes_ += value;
    return *this;
  }
  Protobuf& message(int field, const Protobuf& value) { return bytes(field, value.bytes_); }

  const std::string& text() const { return bytes_; }

 private:
  void tag(int field, int wire_type) { varint(static_cast<std::uint64_t>(field << 3 | wire_type)); }
  void varint(std::uint64_t value) {
    for (; value >= 0x80; value >>= 7U) bytes_ += static_cast<char>(value | 0x80U);
    bytes_ += static_cast<char>(value);
  }

  std::string bytes_ = {};
};

}  // namespace acc
