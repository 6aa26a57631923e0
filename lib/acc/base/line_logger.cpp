// SPDX-License-Identifier: Apache-2.0
#include "acc/base/line_logger.hpp"

#include <spdlog/logger.h>
#include <spdlog/sinks/stdout_sinks.h>

#include <array>
#include <utility>
#include <vector>

#include "acc/base/log_sinks.hpp"

namespace acc::log {
namespace {

constexpr std::array<std::string_view, 6> kPythonNames = {"TRACE",   "DEBUG", "INFO",
                                                          "WARNING", "ERROR", "CRITICAL"};

spdlog::level::level_enum spdlog_severity(Severity level) {
  return static_cast<spdlog::level::level_enum>(level);
}
static_assert(static_cast<int>(Severity::critical) == spdlog::level::critical);

std::unique_ptr<spdlog::formatter> line_formatter(const LineLoggerOptions& options) {
  auto formatter = std::make_unique<spdlog::pattern_formatter>();
  formatter->add_flag<TextFlag>(
      'K', [rank = options.rank](const auto& /*message*/) { return std::to_string(rank); });
  formatter->add_flag<TextFlag>('Q', [](const spdlog::details::log_msg& message) {
    return std::string(kPythonNames.at(static_cast<std::size_t>(message.level)));
  });
  formatter->set_pattern(options.pattern);
  return formatter;
}

}  // namespace

struct LineLogger::Impl {
  std::unique_ptr<spdlog::logger> logger = {};
};

LineLogger::LineLogger(const LineLoggerOptions& options) : impl_(std::make_unique<Impl>()) {
  std::vector<spdlog::sink_ptr> sinks = {std::make_shared<spdlog::sinks::stderr_sink_mt>()};
  if (!options.file.empty()) sinks.push_back(std::make_shared<FileSink>(options.file, "", nullptr));
  impl_->logger = std::make_unique<spdlog::logger>(options.name, sinks.begin(), sinks.end());
  impl_->logger->set_formatter(line_formatter(options));
  impl_->logger->set_level(spdlog_severity(options.level));
  impl_->logger->flush_on(spdlog::level::trace);
}

LineLogger::~LineLogger() = default;

bool LineLogger::is_on(Severity level) const {
  return impl_->logger->should_log(spdlog_severity(level));
}

void LineLogger::write(Severity level, std::string_view text) {
  impl_->logger->log(spdlog_severity(level), text);
}

}  // namespace acc::log
