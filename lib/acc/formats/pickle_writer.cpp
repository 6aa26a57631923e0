// SPDX-License-Identifier: Apache-2.0
#include "acc/formats/pickle_writer.hpp"

#include <bit>
#include <limits>
#include <utility>

namespace acc {

// Opcodes by the names of CPython's pickletools.

PickleWriter::PickleWriter(int protocol) : protocol_(protocol) {
  put(0x80);  // PROTO
  put(static_cast<std::uint8_t>(protocol));
}

void PickleWriter::none() {
  put('N');
}

void PickleWriter::boolean(bool value) {
  put(value ? 0x88 : 0x89);  // NEWTRUE, NEWFALSE
}

void PickleWriter::integer(std::int64_t value) {
  if (value >= 0 && value <= std::numeric_limits<std::uint8_t>::max()) {
    put('K');  // BININT1
    put_number(static_cast<std::uint64_t>(value), 1);
  } else if (value >= std::numeric_limits<std::int32_t>::min() &&
             value <= std::numeric_limits<std::int32_t>::max()) {
    put('J');  // BININT
    put_number(static_cast<std::uint64_t>(value), 4);
  } else {
    put(0x8a);  // LONG1
    put_number(8, 1);
    put_number(static_cast<std::uint64_t>(value), 8);
  }
}

void PickleWriter::unsigned_integer(std::uint64_t value) {
  if (value <= std::numeric_limits<std::int64_t>::max()) return integer(static_cast<std::int64_t>(value));
  put(0x8a);  // LONG1, whose highest bit is the sign
  put_number(9, 1);
  put_number(value, 8);
  put(0);
}

void PickleWriter::real(double value) {
  put('G');  // BINFLOAT, big endian
  const auto bits = std::bit_cast<std::uint64_t>(value);
  for (int shift = 56; shift >= 0; shift -= 8) put(static_cast<std::uint8_t>(bits >> shift & 0xffU));
}

void PickleWriter::text(std::string_view utf8) {
  const bool is_short = protocol_ >= 4 && utf8.size() <= std::numeric_limits<std::uint8_t>::max();
  put(is_short ? 0x8c : 'X');  // SHORT_BINUNICODE, BINUNICODE
  put_number(utf8.size(), is_short ? 1 : 4);
  bytes_ += utf8;
}

void PickleWriter::bytes(std::string_view bytes) {
  put('C');  // SHORT_BINBYTES
  put_number(bytes.size(), 1);
  bytes_ += bytes;
}

void PickleWriter::class_name(std::string_view module, std::string_view name) {
  if (protocol_ < 4) {
    put('c');  // GLOBAL
    bytes_.append(module).append(1, '\n').append(name).append(1, '\n');
    return;
  }
  text(module);
  text(name);
  put(0x93);  // STACK_GLOBAL
}

void PickleWriter::empty_tuple() {
  put(')');
}

void PickleWriter::empty_list() {
  put(']');
}

void PickleWriter::empty_dict() {
  put('}');
}

void PickleWriter::empty_set() {
  put(0x8f);
}

void PickleWriter::mark() {
  put('(');
}

void PickleWriter::tuple_of_marked() {
  put('t');
}

void PickleWriter::fill_list() {
  put('e');  // APPENDS
}

void PickleWriter::fill_dict() {
  put('u');  // SETITEMS
}

void PickleWriter::fill_set() {
  put(0x90);  // ADDITEMS
}

void PickleWriter::tuple(int size) {
  put(static_cast<std::uint8_t>(0x84 + size));  // TUPLE1, TUPLE2, TUPLE3
}

void PickleWriter::new_object() {
  put(0x81);  // NEWOBJ
}

void PickleWriter::call() {
  put('R');  // REDUCE
}

void PickleWriter::persistent() {
  put('Q');  // BINPERSID
}

void PickleWriter::build() {
  put('b');
}

std::uint32_t PickleWriter::memoize() {
  if (protocol_ >= 4) {
    put(0x94);  // MEMOIZE
  } else {
    put('r');  // LONG_BINPUT
    put_number(remembered_, 4);
  }
  return remembered_++;
}

void PickleWriter::get_memo(std::uint32_t number) {
  const bool is_short = number <= std::numeric_limits<std::uint8_t>::max();
  put(is_short ? 'h' : 'j');  // BINGET, LONG_BINGET
  put_number(number, is_short ? 1 : 4);
}

std::string PickleWriter::finish() {
  put('.');  // STOP
  return std::exchange(bytes_, {});
}

// Little endian, whatever the host is.
void PickleWriter::put_number(std::uint64_t number, int size) {
  for (int i = 0; i < size; ++i) put(static_cast<std::uint8_t>(number >> (8 * i) & 0xffU));
}

}  // namespace acc
