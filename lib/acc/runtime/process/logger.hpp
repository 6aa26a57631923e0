// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "acc/runtime/process/partial_state.hpp"

namespace acc {

enum class LogLevel { debug, info, warning, error, critical };

struct LogOptions {
  /// Off: every process writes.
  bool main_process_only = true;
  /// Every process writes, one after the other. Then all must call it, together.
  bool in_order = false;
};

struct LoggerOptions {
  /// The lowest level that is written. Default: ACCELERATE_LOG_LEVEL, else warning.
  std::optional<LogLevel> level = {};
  /// Each line is appended to this file, too; all processes may write to the same one. Empty: none.
  std::filesystem::path file = {};
  /// As spdlog's set_pattern() takes it, with `%K` for the rank and `%Q` for the level's name in Python.
  std::string pattern = "%Q:%n:[RANK %K] %v";
};

/// Writes lines with the rank of this process to standard error, as accelerate's get_logger. Uses spdlog.
/// Copies are the same logger.
class Logger {
 public:
  /// Throws Error{usage} when ACCELERATE_LOG_LEVEL is not a level, Error{system} when the file cannot be
  /// opened.
  Logger(const PartialState& state, std::string name, const LoggerOptions& options);

  void debug(std::string_view text, const LogOptions& options = {}) const {
    log(LogLevel::debug, text, options);
  }
  void info(std::string_view text, const LogOptions& options = {}) const {
    log(LogLevel::info, text, options);
  }
  void warning(std::string_view text, const LogOptions& options = {}) const {
    log(LogLevel::warning, text, options);
  }
  void error(std::string_view text, const LogOptions& options = {}) const {
    log(LogLevel::error, text, options);
  }
  void critical(std::string_view text, const LogOptions& options = {}) const {
    log(LogLevel::critical, text, options);
  }

  /// A warning, only the first time that it is called with this text.
  void warning_once(std::string_view text, const LogOptions& options = {}) const;

  /// One line by the logger's pattern; nothing below its level.
  void log(LogLevel level, std::string_view text, const LogOptions& options = {}) const;

 private:
  struct Impl;
  std::shared_ptr<Impl> impl_;
};

/// A logger of that name; without a file its lines are `LEVEL:name:[RANK r] text`. Throws as Logger does.
Logger get_logger(const PartialState& state, std::string name, std::optional<LogLevel> level = {});

}  // namespace acc
