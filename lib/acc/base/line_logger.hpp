// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <filesystem>
#include <memory>
#include <string>
#include <string_view>

namespace acc::log {

/// In the order of spdlog's levels.
enum class Severity { trace, debug, info, warning, error, critical };

struct LineLoggerOptions {
  std::string name = {};
  /// The minimum level that is written.
  Severity level = Severity::warning;
  /// A file to which every line is appended, too; empty: none.
  std::filesystem::path file = {};
  /// The pattern of spdlog's set_pattern(), with `%K` for `rank` and `%Q` for the level's name in Python.
  std::string pattern = "%Q:%n:[RANK %K] %v";
  int rank = 0;
};

/// Writes lines to standard error, each with one write. Built on spdlog in a source without LibTorch, whose
/// headers contain another version of fmt.
class LineLogger {
 public:
  /// Throws Error{system} if the file cannot be opened.
  explicit LineLogger(const LineLoggerOptions& options);
  ~LineLogger();
  LineLogger(const LineLogger&) = delete;
  LineLogger& operator=(const LineLogger&) = delete;

  bool is_on(Severity level) const;
  void write(Severity level, std::string_view text);

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace acc::log
