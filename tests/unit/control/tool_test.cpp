// SPDX-License-Identifier: Apache-2.0
#include "acc/control/tool.hpp"

#include "support/catch.hpp"

using namespace acc;

namespace {

const Environment kEnvironment = {{"PATH", "/nowhere:/usr/bin:/bin"}, {"WORD", "yes"}};

}  // namespace

TEST_CASE("tool: both streams come back, in the given environment", "[control]") {
  const auto output = run_tool({"sh", "-c", "echo $WORD; echo err >&2; cat"}, kEnvironment, {});
  REQUIRE(output);
  CHECK(output->text == "yes\nerr\n");
  CHECK_FALSE(output->timed_out);
}

TEST_CASE("tool: a program that is not there is absent", "[control]") {
  CHECK_FALSE(run_tool({"acc-no-such-tool"}, kEnvironment, {}));
  CHECK_FALSE(run_tool({"sh", "-c", "true"}, {{"PATH", ""}}, {}));
}

TEST_CASE("tool: one that takes too long is killed with what it started", "[control]") {
  const auto output = run_tool({"sh", "-c", "echo begun; sleep 1000 & sleep 1000"}, kEnvironment,
                               {.time = std::chrono::milliseconds(300)});
  REQUIRE(output);
  CHECK(output->timed_out);
}

TEST_CASE("tool: what is too much is left out", "[control]") {
  const auto output = run_tool({"sh", "-c", "head -c 300000 /dev/zero"}, kEnvironment, {.bytes = 1000});
  REQUIRE(output);
  CHECK(output->text.size() == 1000);
  CHECK_FALSE(output->timed_out);
}
