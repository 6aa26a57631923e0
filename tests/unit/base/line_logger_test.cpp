// SPDX-License-Identifier: Apache-2.0
#include "acc/base/line_logger.hpp"

#include <cstdio>

#include "support/catch.hpp"
#include "support/errors.hpp"
#include "support/printed.hpp"
#include "support/temporary_folder.hpp"

namespace line_logger_test {

using namespace acc;
using log::LineLogger;
using log::Severity;

TEST_CASE("line_logger: a line has level, name and rank, and nothing below the level is written", "[base]") {
  LineLogger logger({.name = "train", .level = Severity::info, .rank = 3});
  CHECK_FALSE(logger.is_on(Severity::debug));
  CHECK(test::printed_to(stderr, [&] {
          logger.write(Severity::debug, "no");
          logger.write(Severity::info, "yes");
          logger.write(Severity::critical, "{braces} %n stay");
        }) == "INFO:train:[RANK 3] yes\nCRITICAL:train:[RANK 3] {braces} %n stay\n");
}

TEST_CASE("line_logger: a file gets the same lines, by the pattern that was asked for", "[base]") {
  const test::TemporaryFolder folder;
  folder.write("train.log", "before\n");
  LineLogger logger(
      {.name = "train", .file = folder.path() / "train.log", .pattern = "%n|%l|%K|%v", .rank = 1});
  CHECK(test::printed_to(stderr, [&] { logger.write(Severity::error, "text"); }) == "train|error|1|text\n");
  CHECK(folder.read("train.log") == "before\ntrain|error|1|text\n");
  CHECK(test::error_of([] { LineLogger({.file = "/dev/null/train.log"}); }).find("/dev/null/train.log") !=
        std::string::npos);
}

}  // namespace line_logger_test
