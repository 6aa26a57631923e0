// SPDX-License-Identifier: Apache-2.0
#include "acc/runtime/process/logger.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <mutex>
#include <set>
#include <utility>

#include "acc/base/environment.hpp"
#include "acc/base/error.hpp"
#include "acc/base/line_logger.hpp"
#include "acc/base/text.hpp"

namespace acc {
namespace {

constexpr std::string_view kLevelVariable = "ACCELERATE_LOG_LEVEL";
constexpr std::array<std::string_view, 5> kNames{"DEBUG", "INFO", "WARNING", "ERROR", "CRITICAL"};

LogLevel level_from(const Environment& environment) {
  const auto text = environment.find(kLevelVariable);
  if (!text) return LogLevel::warning;
  const auto is_level = [&](std::string_view name) { return to_lower(name) == to_lower(trim(*text)); };
  const auto* match = std::ranges::find_if(kNames, is_level);
  if (match == kNames.end()) {
    throw Error({.what = fmt::format("'{}' is not a log level", *text),
                 .where = std::string(kLevelVariable),
                 .hint = "use debug, info, warning, error or critical"});
  }
  return static_cast<LogLevel>(match - kNames.begin());
}

log::Severity severity_of(LogLevel level) {
  return static_cast<log::Severity>(static_cast<int>(level) + static_cast<int>(log::Severity::debug));
}

}  // namespace

struct Logger::Impl {
  Impl(PartialState of, const log::LineLoggerOptions& options) : state(std::move(of)), lines(options) {}

  PartialState state;
  log::LineLogger lines;
  std::mutex mutex = {};
  std::set<std::string, std::less<>> warned = {};
};

Logger::Logger(const PartialState& state, std::string name, const LoggerOptions& options) {
  const LogLevel level = options.level ? *options.level : level_from(Environment::of_process());
  const log::LineLoggerOptions lines = {.name = std::move(name),
                                        .level = severity_of(level),
                                        .file = options.file,
                                        .pattern = options.pattern,
                                        .rank = state.process_index()};
  impl_ = std::make_shared<Impl>(state, lines);
}

void Logger::log(LogLevel level, std::string_view text, const LogOptions& options) const {
  const PartialState& state = impl_->state;
  const auto write = [&] { impl_->lines.write(severity_of(level), text); };
  if (!impl_->lines.is_on(severity_of(level))) return;
  if (!options.in_order) {
    if (!options.main_process_only || state.is_main_process()) write();
    return;
  }
  for (int rank = 0; rank < state.num_processes(); ++rank) {
    if (rank == state.process_index()) write();
    state.wait_for_everyone();
  }
}

void Logger::warning_once(std::string_view text, const LogOptions& options) const {
  {
    const std::scoped_lock lock(impl_->mutex);
    if (!impl_->warned.emplace(text).second) return;
  }
  warning(text, options);
}

Logger get_logger(const PartialState& state, std::string name, std::optional<LogLevel> level) {
  return {state, std::move(name), LoggerOptions{.level = level}};
}

}  // namespace acc
