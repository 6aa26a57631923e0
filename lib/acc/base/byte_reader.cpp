// SPDX-License-Identifier: Apache-2.0
#include "acc/base/byte_reader.hpp"

#include "acc/base/error.hpp"

namespace acc {

std::string_view ByteReader::take(std::size_t size) {
  if (size > bytes_.size()) fail();
  const std::string_view part = bytes_.substr(0, size);
  bytes_.remove_prefix(size);
  return part;
}

std::size_t ByteReader::count(std::size_t item_size) {
  const auto count = number<std::uint64_t>();
  if (count > bytes_.size() / item_size) fail();
  return count;
}

void ByteReader::fail() const {
  throw Error({.kind = ErrorKind::system,
               .what = "what another process sent is damaged",
               .where = std::string(where_),
               .hint = "let all processes run the same program"});
}

void append_text(std::string& bytes, std::string_view text) {
  append_number<std::uint64_t>(bytes, text.size());
  bytes += text;
}

}  // namespace acc
