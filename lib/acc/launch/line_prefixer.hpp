// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <string_view>

#include "acc/launch/log_file.hpp"

namespace acc::launcher {

/// Cuts a stream into lines with a prefix each, as `--tee` shows them. A carriage return ends a line too, as
/// in Python's universal newlines, so that a progress bar is seen. A line longer than 1 MiB is shown in
/// pieces of that size.
class LinePrefixer {
 public:
  /// What to do with each line besides.
  struct Options {
    /// Gives what stands in front of the prefix at that moment: the time.
    std::function<std::string()> stamp = {};
    /// Gets each line too.
    std::shared_ptr<FilteredLog> copy = {};
  };

  explicit LinePrefixer(std::string prefix) : prefix_(std::move(prefix)) {}
  LinePrefixer(std::string prefix, Options options)
      : prefix_(std::move(prefix)), options_(std::move(options)) {}

  /// The lines that `chunk` completes.
  std::string feed(std::string_view chunk);

  /// The last line, if it was not ended.
  std::string finish();

 private:
  std::string take_line();

  std::string prefix_;
  Options options_ = {};
  std::string line_ = {};
  bool after_return_ = false;
};

}  // namespace acc::launcher
