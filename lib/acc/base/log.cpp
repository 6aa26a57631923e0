// SPDX-License-Identifier: Apache-2.0
#include "acc/base/log.hpp"

#include <spdlog/logger.h>
#include <spdlog/sinks/base_sink.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <memory>
#include <mutex>
#include <optional>
#include <utility>
#include <vector>

#include "acc/base/environment.hpp"
#include "acc/base/error.hpp"
#include "acc/base/files.hpp"
#include "acc/base/log_sinks.hpp"
#include "acc/base/machine.hpp"
#include "acc/base/text.hpp"

namespace acc::log {
namespace {

constexpr std::string_view kPrefix = "acc: ";
// In the order of precedence.
constexpr std::array kLevelVariables = {"ACC_LOG_LEVEL", "LOGLEVEL"};
// Marks, in a message's source location, lines that a reporter has rendered: with the usual prefix, or as the
// continuation of an earlier line.
constexpr spdlog::source_loc kRendered{"", 0, "rendered"};
constexpr spdlog::source_loc kContinued{"", 0, "continued"};
constexpr std::string_view kFilePattern = "%Y-%m-%dT%H:%M:%S.%e%z [%l] %N:%P %v";

bool is_from(const spdlog::details::log_msg& message, const spdlog::source_loc& mark) {
  return message.source.funcname == mark.funcname;
}

spdlog::level::level_enum to_spdlog(Level level) {
  constexpr std::array kLevels = {spdlog::level::trace, spdlog::level::debug, spdlog::level::info,
                                  spdlog::level::warn,  spdlog::level::err,   spdlog::level::off};
  return kLevels.at(static_cast<std::size_t>(level));
}

std::unique_ptr<spdlog::formatter> formatter_of(std::string_view pattern) {
  auto formatter = std::make_unique<spdlog::pattern_formatter>();
  formatter->add_flag<TextFlag>('N', [host = host_name()](const auto& /*message*/) { return host; });
  formatter->set_pattern(std::string(pattern));
  return formatter;
}

/// `acc: text`, with the level before the text for unusual levels.
class PlainFormatter : public spdlog::formatter {
 public:
  explicit PlainFormatter(bool color) : color_(color) {}

  void format(const spdlog::details::log_msg& message, spdlog::memory_buf_t& to) override {
    const bool dim = color_ && message.level <= spdlog::level::debug;
    if (dim) to.append(std::string_view("\x1b[2m"));
    if (!is_from(message, kContinued)) {
      to.append(kPrefix);
      append_level(message, to);
    }
    to.append(message.payload);
    if (dim) to.append(std::string_view("\x1b[0m"));
    to.push_back('\n');
  }
  std::unique_ptr<formatter> clone() const override { return std::make_unique<PlainFormatter>(color_); }

 private:
  void append_level(const spdlog::details::log_msg& message, spdlog::memory_buf_t& to) const {
    if (message.level == spdlog::level::trace) to.append(std::string_view("trace: "));
    if (message.level == spdlog::level::debug) to.append(std::string_view("debug: "));
    if (message.level == spdlog::level::warn && !is_from(message, kRendered))
      to.append(std::string_view(color_ ? "\x1b[33mwarning:\x1b[0m " : "warning: "));
  }

  bool color_;
};

/// Writes lines to standard error, or to the console that merges them with the workers', which may log in
/// turn: hence a recursive mutex.
class ConsoleSink : public spdlog::sinks::base_sink<std::recursive_mutex> {
 public:
  // The default formatter would read the time zone.
  ConsoleSink() : base_sink(std::make_unique<PlainFormatter>(false)) {}

  void redirect(Console console) {
    const std::scoped_lock lock(mutex_);
    if (!settled_) console_ = std::move(console);
  }
  void settle(Console console) {
    redirect(std::move(console));
    settled_ = true;
  }

 protected:
  void sink_it_(const spdlog::details::log_msg& message) override {
    spdlog::memory_buf_t text;
    formatter_->format(message, text);
    const std::string_view lines(text.data(), text.size());
    if (console_) {
      console_(lines);
    } else {
      write_all(STDERR_FILENO, lines);
    }
  }
  void flush_() override {}

 private:
  Console console_ = {};
  /// The console stays.
  bool settled_ = false;
};

std::shared_ptr<spdlog::logger> make_logger(std::vector<spdlog::sink_ptr> sinks, Level level) {
  auto logger = std::make_shared<spdlog::logger>("acc", sinks.begin(), sinks.end());
  logger->set_level(to_spdlog(level));
  // Flushes each line: other processes append to the same file, and this one may be killed.
  logger->flush_on(spdlog::level::trace);
  // A full disk must not end a job; spdlog's own message about it is not shown.
  logger->set_error_handler([](const std::string& /*what*/) {});
  return logger;
}

struct Log {
  std::shared_ptr<ConsoleSink> console = std::make_shared<ConsoleSink>();
  std::shared_ptr<spdlog::logger> logger = make_logger({console}, Level::info);
};

// Never destroyed: a thread that waits for a driver which does not answer is left behind, and may write while
// the process ends.
Log& process_log() {
  static Log& log = *new Log;
  return log;
}

bool wants_color() {
  if (::isatty(STDERR_FILENO) != 1) return false;
  const Environment environment = Environment::of_process();
  return environment.get("NO_COLOR").empty() && environment.get("TERM") != "dumb";
}

// What is lost is said on the console alone.
spdlog::sink_ptr open_file(const std::filesystem::path& file, std::string_view pattern,
                           const std::shared_ptr<ConsoleSink>& console) {
  const auto say = [console](const std::string& reason) {
    console->log({"acc", spdlog::level::warn, "the log file cannot be written: " + reason});
  };
  const auto sink = std::make_shared<FileSink>(file, "--log-file", say);
  sink->set_formatter(formatter_of(pattern.empty() ? kFilePattern : pattern));
  return sink;
}

std::optional<Level> find_level(std::string_view name) {
  constexpr std::array<std::pair<std::string_view, Level>, 10> kLevels = {{{"trace", Level::trace},
                                                                           {"debug", Level::debug},
                                                                           {"info", Level::info},
                                                                           {"warn", Level::warn},
                                                                           {"error", Level::error},
                                                                           {"off", Level::off},
                                                                           // Python's
                                                                           {"warning", Level::warn},
                                                                           {"critical", Level::error},
                                                                           {"fatal", Level::error},
                                                                           {"notset", Level::trace}}};
  const auto* const found =
      std::ranges::find(kLevels, to_lower(trim(name)), &decltype(kLevels)::value_type::first);
  return found == kLevels.end() ? std::nullopt : std::optional(found->second);
}

Problem not_a_level(std::string_view name, std::string_view where) {
  return {.what = fmt::format("'{}' is not a log level", name),
          .where = std::string(where),
          .hint = "use trace, debug, info, warn, error or off"};
}

}  // namespace

Level parse_level(std::string_view name, std::string_view where) {
  if (const auto level = find_level(name)) return *level;
  throw Error(ErrorKind::usage, {not_a_level(name, where)});
}

Level level_of(const Environment& environment) {
  for (const char* name : kLevelVariables) {
    if (const auto level = find_level(environment.get(name))) return *level;
  }
  return Level::info;
}

std::vector<Problem> ignored_levels(const Environment& environment) {
  std::vector<Problem> ignored;
  for (const char* name : kLevelVariables) {
    const std::string value = environment.get(name);
    if (!value.empty() && !find_level(value)) ignored.push_back(not_a_level(value, name));
  }
  return ignored;
}

void open(const Options& options) {
  Log& log = process_log();
  if (options.pattern.empty()) {
    log.console->set_formatter(std::make_unique<PlainFormatter>(wants_color()));
  } else {
    log.console->set_formatter(formatter_of(options.pattern));
  }
  std::vector<spdlog::sink_ptr> sinks = {log.console};
  if (!options.file.empty()) sinks.push_back(open_file(options.file, options.pattern, log.console));
  log.logger = make_logger(std::move(sinks), options.level);
}

ConsoleRedirect::ConsoleRedirect(Console console) {
  process_log().console->redirect(std::move(console));
}

ConsoleRedirect::~ConsoleRedirect() {
  process_log().console->redirect({});
}

void send_to(Console console) {
  process_log().console->settle(std::move(console));
}

bool is_on(Level level) {
  return process_log().logger->should_log(to_spdlog(level));
}

void write(Level level, std::string_view text) {
  if (is_on(level)) process_log().logger->log(to_spdlog(level), text);
}

void write_rendered(Level level, std::string_view lines) {
  if (!is_on(level)) return;
  if (lines.ends_with('\n')) lines.remove_suffix(1);
  const bool continued = !lines.starts_with(kPrefix);
  if (!continued) lines.remove_prefix(kPrefix.size());
  process_log().logger->log(continued ? kContinued : kRendered, to_spdlog(level), lines);
}

}  // namespace acc::log
