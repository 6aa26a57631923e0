// SPDX-License-Identifier: Apache-2.0
#include "acc/runtime/process/logger.hpp"

#include <cstdlib>

#include "acc/base/error.hpp"
#include "acc/base/files.hpp"
#include "support/catch.hpp"
#include "support/printed.hpp"
#include "support/temporary_folder.hpp"

namespace logger_test {

using acc::test::printed_to;

TEST_CASE("logger: a line has level, name and rank, and lines below the level are dropped", "[runtime]") {
  const acc::PartialState state;
  const acc::Logger logger = acc::get_logger(state, "train", acc::LogLevel::info);
  CHECK(printed_to(stderr, [&] {
          logger.debug("no");
          logger.info("yes");
          logger.error("also", {.main_process_only = false});
          logger.critical("in turn", {.in_order = true});
        }) == "INFO:train:[RANK 0] yes\nERROR:train:[RANK 0] also\nCRITICAL:train:[RANK 0] in turn\n");
}

TEST_CASE("logger: warning_once writes a text once, also through a copy", "[runtime]") {
  const acc::Logger logger = acc::get_logger(acc::PartialState(), "train");
  const acc::Logger copy = logger;
  CHECK(printed_to(stderr, [&] {
          logger.warning_once("a");
          copy.warning_once("a");
          logger.warning_once("b");
          logger.info("below the default level");
        }) == "WARNING:train:[RANK 0] a\nWARNING:train:[RANK 0] b\n");
}

TEST_CASE("logger: ACCELERATE_LOG_LEVEL is the default level", "[runtime]") {
  const acc::PartialState state;
  ::setenv("ACCELERATE_LOG_LEVEL", "Debug", 1);
  const acc::Logger logger = acc::get_logger(state, "train");
  ::setenv("ACCELERATE_LOG_LEVEL", "loud", 1);
  CHECK_THROWS_WITH(
      acc::get_logger(state, "train"),
      "ACCELERATE_LOG_LEVEL: 'loud' is not a log level (use debug, info, warning, error or critical)");
  ::unsetenv("ACCELERATE_LOG_LEVEL");
  CHECK(printed_to(stderr, [&] { logger.debug("seen"); }) == "DEBUG:train:[RANK 0] seen\n");
}

TEST_CASE("logger: a file gets the same lines, with the program's own pattern", "[runtime]") {
  const acc::test::TemporaryFolder folder;
  const auto file = folder.path() / "train.log";
  const acc::Logger logger(acc::PartialState(), "train",
                           {.level = acc::LogLevel::info, .file = file, .pattern = "%n %l %K: %v"});
  CHECK(printed_to(stderr, [&] {
          logger.debug("no");
          logger.info("yes");
        }) == "train info 0: yes\n");
  CHECK(acc::read_file(file) == "train info 0: yes\n");
  CHECK_THROWS_AS(acc::Logger(acc::PartialState(), "train", {.file = "/dev/null/train.log"}), acc::Error);
}

}  // namespace logger_test
