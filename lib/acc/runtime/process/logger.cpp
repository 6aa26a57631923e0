// SPDX-License-Identifier: Apache-2.0
#include "acc/runtime/process/logger.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstdio>
#include <mutex>
#include <set>
#include <utility>

#include "acc/base/environment.hpp"
#include "acc/base/error.hpp"
#include "acc/base/text.hpp"

namespace acc {
namespace {

constexpr std::string_view kLevelVariable = "ACCELERATE_LOG_LEVEL";
constexpr std::array<std::string_view, 5> kNames{"DEBUG", "INFO", "WARNING", "ERROR", "CRITICAL"};

LogLevel level_from(const Environment& environment) {
  const auto text = environment.find(kLevelVariable);
  if (!text) return LogLevel::warning;
  const auto is_it = [&](std::string_view name) { return to_lower(name) == to_lower(trim(*text)); };
  const auto* place = std::ranges::find_if(kNames, is_it);
  if (place == kNames.end()) {
    throw Error({.what = fmt::format("'{}' is no log level", *text),
                 .where = std::string(kLevelVariable),
                 .hint = "use debug, info, warning, error or critical"});
  }
  return static_cast<LogLevel>(place - kNames.begin());
}

}  // namespace

struct Logger::Impl {
  PartialState state;
  std::string name = {};
  LogLevel level = LogLevel::warning;
  std::mutex mutex = {};
  std::set<std::string, std::less<>> warned = {};
};

Logger::Logger(PartialState state, std::string name, LogLevel level)
    : impl_(std::make_shared<Impl>(std::move(state), std::move(name), level)) {}

void Logger::log(LogLevel level, std::string_view text, const LogOptions& options) const {
  const PartialState& state = impl_->state;
  const auto write = [&] {
    const std::string line = fmt::format("{}:{}:[RANK {}] {}\n", kNames.at(static_cast<std::size_t>(level)),
                                         impl_->name, state.process_index(), text);
    std::fwrite(line.data(), 1, line.size(), stderr);
  };
  if (level < impl_->level) return;
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
  return {state, std::move(name), level ? *level : level_from(Environment::of_process())};
}

}  // namespace acc
