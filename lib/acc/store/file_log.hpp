// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <functional>
#include <map>
#include <string>
#include <string_view>

namespace acc::launcher {

/// What a torch FileStore's file says (torch 2.11, 2.15): one entry after the other, each a key and a value
/// with their lengths in front (four bytes, little endian). The last entry of a key counts; `-` in front of
/// the key deletes it. Beside users' keys, which begin with `/`, torch counts in `refcount/` and `cleanup/`.
class FileLog {
 public:
  /// Reads the entries that are whole, and returns how many bytes they have: the rest is to come again with
  /// what follows it. Throws Error{rendezvous} when no FileStore wrote the bytes.
  std::size_t read(std::string_view bytes);

  /// Null when there is no such key.
  const std::string* find(std::string_view key) const;

  void clear() { values_.clear(); }

 private:
  std::map<std::string, std::string, std::less<>> values_ = {};
};

/// The entry that sets a key.
std::string file_log_entry(std::string_view key, std::string_view value);

/// The entry that deletes a key.
std::string file_log_deletion(std::string_view key);

}  // namespace acc::launcher
