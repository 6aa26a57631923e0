// SPDX-License-Identifier: Apache-2.0
#include "acc/launch/output.hpp"
#include "support/catch.hpp"

namespace output_plan_test {

using namespace acc;
using namespace acc::launcher;

TEST_CASE("stream_plan: by default everything goes to the console", "[launch]") {
  CHECK(plan_stream({}, {.local_rank = 0}, Streams::out, true) == StreamPlan{.console = true});
}

TEST_CASE("stream_plan: redirected streams go to the file only, tee'd ones to both", "[launch]") {
  const OutputPlan output = {.redirects = {.default_streams = Streams::out},
                             .tee = {.of_rank = {{1, Streams::both}}}};
  CHECK(plan_stream(output, {.local_rank = 0}, Streams::out, true) == StreamPlan{.file = true});
  CHECK(plan_stream(output, {.local_rank = 0}, Streams::err, true) == StreamPlan{.console = true});
  CHECK(plan_stream(output, {.local_rank = 1}, Streams::out, true) ==
        StreamPlan{.file = true, .console = true, .prefixed = true});
}

TEST_CASE("stream_plan: ranks outside the filter do not go to the console", "[launch]") {
  const OutputPlan output = {.tee = {.of_rank = {{1, Streams::out}, {2, Streams::out}}},
                             .local_ranks_filter = {2}};
  CHECK(plan_stream(output, {.local_rank = 0}, Streams::out, true) == StreamPlan{});
  CHECK(plan_stream(output, {.local_rank = 1}, Streams::out, true) == StreamPlan{.file = true});
  CHECK(plan_stream(output, {.local_rank = 2}, Streams::out, true).prefixed);
}

TEST_CASE("stream_plan: without logs there are no files and no filter", "[launch]") {
  const OutputPlan output = {
      .redirects = {.default_streams = Streams::both}, .no_logs = true, .local_ranks_filter = {2}};
  CHECK(plan_stream(output, {.local_rank = 0}, Streams::out, false) == StreamPlan{.console = true});
}

TEST_CASE("stream_plan: a filter by global rank applies even without logs", "[launch]") {
  const OutputPlan output = {.no_logs = true, .ranks_filter = {4}};
  CHECK(plan_stream(output, {.local_rank = 0, .rank = 4}, Streams::out, false) ==
        StreamPlan{.console = true});
  CHECK(plan_stream(output, {.local_rank = 4, .rank = 12}, Streams::out, false) == StreamPlan{});
}

TEST_CASE("stream_plan: timestamps are for the console only", "[launch]") {
  const OutputPlan output = {.redirects = {.default_streams = Streams::out}, .log_timestamps = true};
  CHECK(plan_stream(output, {}, Streams::out, true) == StreamPlan{.file = true});
  CHECK(plan_stream(output, {}, Streams::err, true) == StreamPlan{.console = true, .stamped = true});
}

}  // namespace output_plan_test
