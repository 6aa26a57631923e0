// SPDX-License-Identifier: Apache-2.0
#include "acc/base/cbor_nesting.hpp"

#include <cstddef>
#include <cstdint>
#include <limits>
#include <optional>
#include <vector>

namespace acc {
namespace {

// RFC 8949: a value begins with its kind, in three bits, and a number, or how many bytes the number has.
enum class Kind : unsigned { unsigned_number, negative_number, bytes, text, array, map, tag, simple };

constexpr std::uint64_t kWithoutEnd = std::numeric_limits<std::uint64_t>::max();

struct Head {
  Kind kind = Kind::simple;
  std::uint64_t number = 0;  // kWithoutEnd: its items, or parts, have an end instead
};

// Absent where there is none, so that the library does not read on either.
std::optional<Head> take_head(std::string_view& cbor) {
  constexpr unsigned kOneByte = 24;
  constexpr unsigned kEightBytes = 27;
  constexpr unsigned kIndefinite = 31;
  const auto first = static_cast<unsigned char>(cbor.front());
  cbor.remove_prefix(1);
  Head head{.kind = static_cast<Kind>(first >> 5U), .number = first & 31U};
  if (head.number < kOneByte) return head;
  if (head.number == kIndefinite) return Head{head.kind, kWithoutEnd};
  const std::size_t size = std::size_t{1} << (head.number - kOneByte);
  if (head.number > kEightBytes || size > cbor.size()) return std::nullopt;
  head.number = 0;
  for (const char byte : cbor.substr(0, size))
    head.number = head.number << 8U | static_cast<unsigned char>(byte);
  cbor.remove_prefix(size);
  return head;
}

bool is_container(const Head& head) {
  if (head.kind == Kind::array || head.kind == Kind::map) return true;
  return (head.kind == Kind::bytes || head.kind == Kind::text) && head.number == kWithoutEnd;
}

std::uint64_t items_of(const Head& head) {
  if (head.kind != Kind::map) return head.number;
  return head.number > kWithoutEnd / 2 ? kWithoutEnd : 2 * head.number;
}

}  // namespace

bool is_deeply_nested_cbor(std::string_view cbor) {
  constexpr std::size_t kMaxDepth = 1000;
  std::vector<std::uint64_t> remaining;  // items of each container that is open
  while (!cbor.empty() && remaining.size() <= kMaxDepth) {
    const auto head = take_head(cbor);
    if (!head) return false;
    if (head->kind == Kind::simple && head->number == kWithoutEnd) {  // the end of such a container
      if (remaining.empty()) return false;
      remaining.pop_back();
    } else {
      if (!remaining.empty() && remaining.back() != kWithoutEnd) --remaining.back();
      if (is_container(*head)) {
        remaining.push_back(items_of(*head));
      } else if (head->kind == Kind::bytes || head->kind == Kind::text) {
        if (head->number > cbor.size()) return false;
        cbor.remove_prefix(head->number);
      }
    }
    while (!remaining.empty() && remaining.back() == 0) remaining.pop_back();
    if (remaining.empty()) return false;  // what follows is not read
  }
  return remaining.size() > kMaxDepth;
}

}  // namespace acc
