// SPDX-License-Identifier: Apache-2.0
#include "acc/base/log.hpp"

#include <unistd.h>

#include <regex>

#include "acc/base/machine.hpp"
#include "support/catch.hpp"
#include "support/errors.hpp"
#include "support/in_child.hpp"
#include "support/temporary_folder.hpp"

namespace log_test {

using namespace acc;
using log::Level;

namespace {

// The standard error of `act`.
template <class Act>
std::string console_of(const log::Options& options, Act act) {
  std::string text;
  {
    const log::ConsoleRedirect console([&](std::string_view lines) { text += lines; });
    log::open(options);
    act();
  }
  log::open({.level = Level::off});
  return text;
}

void say_everything() {
  log::trace("one {}", 1);
  log::debug("two {}", 2);
  log::write(Level::info, "three");
  log::write(Level::warn, "four");
  log::write(Level::error, "five");
}

}  // namespace

TEST_CASE("log: a level includes those above it", "[base]") {
  CHECK(console_of({.level = Level::trace}, say_everything) ==
        "acc: trace: one 1\nacc: debug: two 2\nacc: three\nacc: warning: four\nacc: five\n");
  CHECK(console_of({}, say_everything) == "acc: three\nacc: warning: four\nacc: five\n");
  CHECK(console_of({.level = Level::error}, say_everything) == "acc: five\n");
  CHECK(console_of({.level = Level::off}, say_everything).empty());
}

TEST_CASE("log: lines of a reporter are shown unchanged", "[base]") {
  CHECK(console_of({}, [] { log::write_rendered(Level::error, "acc: rank 1 failed\n  why\n"); }) ==
        "acc: rank 1 failed\n  why\n");
}

TEST_CASE("log: a file gets each line with time, level, host and pid, appended", "[base]") {
  const test::TemporaryFolder folder;
  const auto file = folder.write("acc.log", "before\n");
  CHECK(console_of({.level = Level::debug, .file = file}, [] { log::debug("here"); }) ==
        "acc: debug: here\n");
  const std::regex line(
      R"(before\n\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}[+-]\d\d:\d\d \[debug\] (.*):(\d+) here\n)");
  std::smatch parts;
  const std::string text = folder.read("acc.log");
  REQUIRE(std::regex_match(text, parts, line));
  CHECK(parts[1] == host_name());
  CHECK(parts[2] == std::to_string(::getpid()));
}

TEST_CASE("log: a pattern shapes console and file", "[base]") {
  const test::TemporaryFolder folder;
  const log::Options options = {.file = folder.path() / "new" / "acc.log", .pattern = "<%l> %v"};
  CHECK(console_of(options, [] { log::write(Level::info, "text"); }) == "<info> text\n");
  CHECK(folder.read("new/acc.log") == "<info> text\n");
}

TEST_CASE("log: an unwritable file is an error with the reason", "[base]") {
  const std::string error = test::error_of([] { log::open({.file = "/dev/null/acc.log"}); });
  CHECK(error.starts_with("--log-file: "));
  CHECK(error.find("/dev/null/acc.log") != std::string::npos);
}

TEST_CASE("log: a console may log while it writes", "[base]") {
  std::string shown;
  const log::ConsoleRedirect redirect([&shown](std::string_view lines) {
    if (shown.empty()) {
      shown = "(";
      log::write(log::Level::error, "the reader is gone");
    }
    shown += lines;
  });
  log::open({});
  log::write(log::Level::error, "first");
  log::open({.level = Level::off});
  CHECK(shown == "(acc: the reader is gone\nacc: first\n");
}

TEST_CASE("log: what is written while the process ends is kept", "[base]") {
  struct LastWords {
    ~LastWords() { log::write(Level::error, "from a thread that was left behind"); }
  };
  const test::TemporaryFolder folder;
  const auto end = [&]() -> int {
    static const LastWords words;
    log::open({.level = Level::error, .file = folder.path() / "acc.log"});
    std::exit(0);
  };
  CHECK(test::in_child(end) == 0);
  CHECK(folder.read("acc.log").find("from a thread that was left behind") != std::string::npos);
}

TEST_CASE("log: levels have spdlog's names and those of Python's logging", "[base]") {
  CHECK(log::parse_level("DEBUG", "X") == Level::debug);
  CHECK(log::parse_level("warning", "X") == Level::warn);
  CHECK(log::parse_level("CRITICAL", "X") == Level::error);
  CHECK(test::error_of([] { log::parse_level("loud", "LOGLEVEL"); }) ==
        "LOGLEVEL: 'loud' is not a log level (use trace, debug, info, warn, error or off)");
}

TEST_CASE("log: acc's variable takes precedence over that of torchrun's scripts", "[base]") {
  CHECK(log::level_of({}) == Level::info);
  CHECK(log::level_of({{"LOGLEVEL", "DEBUG"}}) == Level::debug);
  CHECK(log::level_of({{"LOGLEVEL", "DEBUG"}, {"ACC_LOG_LEVEL", "error"}}) == Level::error);
}

TEST_CASE("log: an invalid level in the environment is ignored with a warning", "[base]") {
  const Environment environment = {{"LOGLEVEL", "5"}, {"ACC_LOG_LEVEL", ""}};
  CHECK(log::level_of(environment) == Level::info);
  const std::vector<Problem> ignored = log::ignored_levels(environment);
  REQUIRE(ignored.size() == 1);
  CHECK(to_string(ignored[0]) ==
        "LOGLEVEL: '5' is not a log level (use trace, debug, info, warn, error or off)");
  CHECK(log::level_of({{"LOGLEVEL", "debug"}, {"ACC_LOG_LEVEL", "loud"}}) == Level::debug);
  CHECK(log::ignored_levels({{"LOGLEVEL", "debug"}, {"ACC_LOG_LEVEL", "loud"}}).size() == 1);
  CHECK(log::ignored_levels({{"LOGLEVEL", "WARNING"}}).empty());
}

}  // namespace log_test
