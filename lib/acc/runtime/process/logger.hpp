// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "acc/runtime/process/partial_state.hpp"

namespace acc {

/// Python's levels.
enum class LogLevel { debug, info, warning, error, critical };

/// Which processes write a line.
struct LogOptions {
  /// If false, every process writes.
  bool main_process_only = true;
  /// Every process writes, in rank order; all processes must make the call.
  bool in_order = false;
};

/// What a Logger writes, and where.
struct LoggerOptions {
  /// The lowest level that is written. Default: ACCELERATE_LOG_LEVEL, else warning.
  std::optional<LogLevel> level = {};
  /// A file to which each line is also appended; all processes may use the same one. Default: none.
  std::filesystem::path file = {};
  /// A pattern of spdlog's set_pattern(), in which `%K` is the rank and `%Q` the level's name in Python.
  std::string pattern = "%Q:%n:[RANK %K] %v";
};

/// Writes lines with the rank of this process to standard error, as the logger of accelerate's get_logger.
/// Copies share one logger.
class Logger {
 public:
  /// Throws Error{usage} when ACCELERATE_LOG_LEVEL is not a level, Error{system} when the file cannot be
  /// opened.
  Logger(const PartialState& state, std::string name, const LoggerOptions& options);

  /// See log.
  void debug(std::string_view text, const LogOptions& options = {}) const {
    log(LogLevel::debug, text, options);
  }
  /// See log.
  void info(std::string_view text, const LogOptions& options = {}) const {
    log(LogLevel::info, text, options);
  }
  /// See log.
  void warning(std::string_view text, const LogOptions& options = {}) const {
    log(LogLevel::warning, text, options);
  }
  /// See log.
  void error(std::string_view text, const LogOptions& options = {}) const {
    log(LogLevel::error, text, options);
  }
  /// See log.
  void critical(std::string_view text, const LogOptions& options = {}) const {
    log(LogLevel::critical, text, options);
  }

  /// Writes a warning, only the first time for the same text.
  void warning_once(std::string_view text, const LogOptions& options = {}) const;

  /// Writes one line with the logger's pattern; does nothing for levels below the logger's.
  void log(LogLevel level, std::string_view text, const LogOptions& options = {}) const;

 private:
  struct Impl;
  std::shared_ptr<Impl> impl_;
};

/// A logger that writes `LEVEL:name:[RANK r] text` to standard error. Throws as Logger's constructor.
Logger get_logger(const PartialState& state, std::string name, std::optional<LogLevel> level = {});

}  // namespace acc
