// SPDX-License-Identifier: Apache-2.0
#pragma once

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

/// Writes lines to standard error that tell which process wrote them: accelerate's get_logger. Copies are the
/// same logger.
class Logger {
 public:
  Logger(PartialState state, std::string name, LogLevel level);

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

  /// A warning, only the first time that it is given this text.
  void warning_once(std::string_view text, const LogOptions& options = {}) const;

  /// `LEVEL:name:[RANK r] text`, as Python's logging writes it; nothing below the logger's level.
  void log(LogLevel level, std::string_view text, const LogOptions& options = {}) const;

 private:
  struct Impl;
  std::shared_ptr<Impl> impl_;
};

/// A logger of that name. `level` is the least that is written; default: ACCELERATE_LOG_LEVEL, else warning.
/// Throws Error{usage} for a variable that is no level.
Logger get_logger(const PartialState& state, std::string name, std::optional<LogLevel> level = {});

}  // namespace acc
