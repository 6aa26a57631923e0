// SPDX-License-Identifier: Apache-2.0
#include "support/catch.hpp"
#include "support/transcripts.hpp"

using acc::launcher::Value;

TEST_CASE("questions_tpu: recorded answers give accelerate's file", "[config]") {
  CHECK(acc::test::file_of("config_tpu_pod_commands") == acc::test::recorded_file("config_tpu_pod_commands"));
}

TEST_CASE("questions_tpu: sudo is a truth value, and no machines are an empty list", "[config]") {
  // accelerate writes the text 'yes', and a list with one empty name.
  acc::launcher::Interview interview({.folder = "/work"});
  const auto recorded = acc::test::recording("config_tpu_pod_file");
  CHECK_FALSE(acc::test::feed(interview, recorded.at("transcript")));
  CHECK(interview.values().at("tpu_use_sudo") == true);
  CHECK(interview.values().at("tpu_vm") == Value::array());
  CHECK(interview.values().at("tpu_env") == Value::array());
  CHECK(interview.values().at("command_file") == "/c.sh");
}
