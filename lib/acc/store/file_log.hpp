// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <functional>
#include <map>
#include <string>
#include <string_view>

namespace acc::launcher {

/// The contents of a torch FileStore's file (torch 2.11, 2.15): a sequence of entries, each a key and a
/// value, both preceded by their length (four bytes, little endian). The last entry of a key is valid; `-`
/// before the key deletes it. Users' keys begin with `/`; torch has counters below `refcount/` and
/// `cleanup/`.
class FileLog {
 public:
  /// Reads the complete entries and returns their size in bytes; the rest must be passed again with what
  /// follows. Throws Error{rendezvous} for bytes that no FileStore wrote.
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
