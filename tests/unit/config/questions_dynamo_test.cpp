// SPDX-License-Identifier: Apache-2.0
#include "support/catch.hpp"
#include "support/transcripts.hpp"

TEST_CASE("questions_dynamo: recorded answers give accelerate's file", "[config]") {
  CHECK(acc::test::file_of("config_no_dynamo_custom") == acc::test::recorded_file("config_no_dynamo_custom"));
}

TEST_CASE("questions_dynamo: the back end that accelerate misspells is offered by its name", "[config]") {
  const acc::launcher::Interview interview =
      acc::test::interview_after({"", "", "", "yes", "torchxla_trace_once"});
  CHECK(interview.values().at("dynamo_config") ==
        acc::launcher::Value{{"dynamo_backend", "TORCHXLA_TRACE_ONCE"}});
}
