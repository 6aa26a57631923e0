// SPDX-License-Identifier: Apache-2.0
#include "acc/base/capture.hpp"

#include "support/catch.hpp"

using acc::Environment;
using acc::output_of;

constexpr std::chrono::seconds kLong(60);

TEST_CASE("capture: both streams of a command are its output, whatever it ends with", "[base]") {
  CHECK(output_of({"/bin/sh", "-c", "echo $WORD; echo err >&2; exit 3"}, Environment{{"WORD", "out"}},
                  kLong) == "out\nerr\n");
}

TEST_CASE("capture: a command that is not there has no output", "[base]") {
  CHECK_FALSE(output_of({"/no/such/program"}, {}, kLong));
}

TEST_CASE("capture: a command that does not end is killed, with what it started", "[base]") {
  CHECK_FALSE(
      output_of({"/bin/sh", "-c", "sleep 1000 & echo begun; wait"}, {}, std::chrono::milliseconds(50)));
}

TEST_CASE("capture: a flood is cut, and the command still ends", "[base]") {
  const auto text =
      output_of({"/bin/sh", "-c", "head -c 300000 /dev/zero"}, Environment{{"PATH", "/usr/bin:/bin"}}, kLong);
  REQUIRE(text);
  CHECK(text->size() == 65536);
}
