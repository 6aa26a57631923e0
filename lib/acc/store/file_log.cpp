// SPDX-License-Identifier: Apache-2.0
#include "acc/store/file_log.hpp"

#include <array>
#include <cstdint>
#include <cstring>
#include <optional>
#include <utility>

#include "acc/base/error.hpp"

namespace acc::launcher {
namespace {

constexpr char kDeletes = '-';
// Keys of agents have about a hundred bytes, values some thousand for each hundred nodes.
constexpr std::size_t kMaxKey = std::size_t{64} << 10U;
constexpr std::size_t kMaxValue = std::size_t{64} << 20U;

[[noreturn]] void refuse() {
  throw Error({.kind = ErrorKind::rendezvous, .what = "is not a file of torch's FileStore"});
}

bool may_begin_a_key(char c) {
  return c == '/' || c == kDeletes || c == 'r' || c == 'c';
}

/// Reads texts one after the other; absent if too few bytes are left.
class Cursor {
 public:
  explicit Cursor(std::string_view bytes) : remaining_(bytes) {}

  std::optional<std::string_view> text(std::size_t max) {
    std::uint32_t size = 0;
    if (remaining_.size() < sizeof size) return std::nullopt;
    std::memcpy(&size, remaining_.data(), sizeof size);
    if (size > max) refuse();
    if (remaining_.size() - sizeof size < size) return std::nullopt;
    const std::string_view text = remaining_.substr(sizeof size, size);
    remaining_.remove_prefix(sizeof size + size);
    return text;
  }

  std::size_t remaining() const { return remaining_.size(); }

 private:
  std::string_view remaining_;
};

void append_field(std::string& entry, std::string_view text) {
  const auto size = static_cast<std::uint32_t>(text.size());
  std::array<char, sizeof size> bytes = {};
  std::memcpy(bytes.data(), &size, sizeof size);
  entry.append(bytes.data(), bytes.size());
  entry += text;
}

}  // namespace

std::size_t FileLog::read(std::string_view bytes) {
  Cursor cursor(bytes);
  std::size_t whole = 0;
  for (;;) {
    const auto key = cursor.text(kMaxKey);
    if (key && (key->empty() || !may_begin_a_key(key->front()))) refuse();
    const auto value = key ? cursor.text(kMaxValue) : std::nullopt;
    if (!value) return whole;
    whole = bytes.size() - cursor.remaining();
    if (key->front() == kDeletes) {
      values_.erase(std::string(key->substr(1)));
    } else {
      values_[std::string(*key)] = *value;
    }
  }
}

const std::string* FileLog::find(std::string_view key) const {
  const auto found = values_.find(key);
  return found == values_.end() ? nullptr : &found->second;
}

std::string file_log_entry(std::string_view key, std::string_view value) {
  std::string entry;
  append_field(entry, key);
  append_field(entry, value);
  return entry;
}

std::string file_log_deletion(std::string_view key) {
  return file_log_entry(kDeletes + std::string(key), "");
}

}  // namespace acc::launcher
