// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <filesystem>
#include <string_view>

#include "acc/base/files.hpp"

namespace acc::detail {

/// A file that grows by whole records: each is written at once and unbuffered, so that nothing that was
/// appended is lost when the process dies.
class AppendedFile {
 public:
  /// Opens or makes it, with missing folders. Throws Error{system} when it cannot.
  explicit AppendedFile(std::filesystem::path file);

  /// Throws Error{system} when it cannot, as on a full disk; no part of the record is then left.
  void append(std::string_view record);

  /// Removes the text after the last newline: part of a line whose writer was killed.
  void cut_unfinished_line();

 private:
  [[noreturn]] void fail(std::string_view what) const;

  std::filesystem::path file_;
  Descriptor descriptor_;
};

/// The current time, as trackers write it.
inline double seconds_since_1970() {
  return std::chrono::duration<double>(std::chrono::system_clock::now().time_since_epoch()).count();
}

}  // namespace acc::detail
