// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>

namespace acc {

/// Cuts a stream into lines with a prefix each, as `--tee` shows them. A carriage return ends a line too, as
/// in Python's universal newlines, so that a progress bar is seen.
class LinePrefixer {
 public:
  explicit LinePrefixer(std::string prefix) : prefix_(std::move(prefix)) {}

  /// The lines that `chunk` completes.
  std::string feed(std::string_view chunk);

  /// The last line, if it was not ended.
  std::string finish();

 private:
  std::string prefix_;
  std::string line_ = {};
  bool after_return_ = false;
};

}  // namespace acc
