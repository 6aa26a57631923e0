// SPDX-License-Identifier: Apache-2.0
#include "acc/config/defaults.hpp"
#include "support/catch.hpp"
#include "support/transcripts.hpp"

namespace questions_platforms_test {

using acc::launcher::Interview;
using acc::launcher::Value;
using acc::test::current_name;
using acc::test::file_of;
using acc::test::interview_after;
using acc::test::recorded_file;

TEST_CASE("questions_sagemaker: recorded answers give accelerate's file", "[config]") {
  CHECK(file_of("config_sagemaker_data_parallel") == recorded_file("config_sagemaker_data_parallel"));
}

TEST_CASE("questions_sagemaker: images and paths stay as they were entered", "[config]") {
  // accelerate writes img and in.tsv, which name something else.
  std::string expected = recorded_file("config_sagemaker_no");
  expected.replace(expected.find("img"), 3, "IMG");
  expected.replace(expected.find("in.tsv"), 6, "IN.tsv");
  CHECK(file_of("config_sagemaker_no") == expected);
}

TEST_CASE("questions_sagemaker: keys may be left out, and a new role has accelerate's name", "[config]") {
  const Interview interview = interview_after(
      {"AWS (Amazon SageMaker)", "1", "", "secret", "", "1", "no", "no", "no", "Data parallelism", "no"});
  CHECK(current_name(interview) == "parallel_instance_type");
  const acc::launcher::ConfigValues values = interview.values();
  CHECK(values.at("iam_role_name") == "accelerate_sagemaker_execution_role");
  CHECK_FALSE(values.contains("profile"));
  CHECK(acc::launcher::format_config(values, "c.yaml").find("secret") == std::string::npos);
}

TEST_CASE("questions_sagemaker: dynamo is asked for, FP8's library is not", "[config]") {
  Interview interview =
      interview_after({"1", "", "", "", "", "role", "", "", "", "", "yes", "", "", "", "fp8"});
  CHECK(interview.current() == nullptr);
  CHECK(interview.values().at("dynamo_config") == acc::launcher::Value{{"dynamo_backend", "INDUCTOR"}});
}

TEST_CASE("questions_sagemaker: after a step back to the first question this machine can be chosen",
          "[config]") {
  Interview interview = interview_after({"1", ""});
  CHECK(interview.go_back());
  CHECK(interview.go_back());
  CHECK_FALSE(interview.answer("This machine"));
  CHECK(current_name(interview) == "distributed_type");
  CHECK_FALSE(interview.values().contains("region"));
}

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

}  // namespace questions_platforms_test
