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
  /// The least that is written.
  Severity level = Severity::warning;
  /// Gets every line too, behind what is there already. Empty: none.
  std::filesystem::path file = {};
  /// As spdlog's set_pattern() takes it, with `%K` for `rank` and `%Q` for the level's name in Python.
  std::string pattern = "%Q:%n:[RANK %K] %v";
  int rank = 0;
};

/// Writes lines to standard error, each whole and at once. spdlog, in a source that does not see LibTorch,
/// whose headers hold another fmt than spdlog's.
class LineLogger {
 public:
  /// Throws Error{system} when the file cannot be opened.
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
