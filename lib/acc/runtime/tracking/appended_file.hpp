// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <filesystem>
#include <string_view>

#include "acc/base/descriptor.hpp"

namespace acc {

/// A file that grows by whole records: each is written at once and unbuffered, so that nothing that was
/// appended is lost when the process dies.
class AppendedFile {
 public:
  /// Opens or makes it, with missing folders. Throws Error{system} when it cannot.
  explicit AppendedFile(std::filesystem::path file);

  /// Throws Error{system} when it cannot, as on a full disk; no part of the record is then left.
  void append(std::string_view record);

  /// Removes what stands behind the last newline: the part of a line whose writer was killed meanwhile.
  void cut_unfinished_line();

 private:
  [[noreturn]] void fail(std::string_view what) const;

  std::filesystem::path file_;
  Descriptor descriptor_;
};

}  // namespace acc
