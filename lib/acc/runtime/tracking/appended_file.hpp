// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <filesystem>
#include <string_view>

#include "acc/base/files.hpp"

namespace acc::detail {

/// A file to which whole records are appended, without a buffer, so that no appended record is lost when the
/// process is killed.
class AppendedFile {
 public:
  /// Opens or creates the file, with missing folders. Throws Error{system}.
  explicit AppendedFile(std::filesystem::path file);

  /// Whether its name is that of another file now, or of none.
  bool is_replaced() const;

  /// Throws Error{system}, as on a full disk; no part of the record is then left in the file.
  void append(std::string_view record);

  /// Removes the text after the last newline: an incomplete line whose writer was killed.
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
