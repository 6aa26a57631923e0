// SPDX-License-Identifier: Apache-2.0
#include "support/catch.hpp"
#include "support/transcripts.hpp"

namespace questions_performance_test {

using acc::launcher::Value;
using acc::test::interview_after;

namespace {

const std::vector<std::string> kBeforePrecision = {"", "", "", "", "", "", ""};

Value fp8_config(std::vector<std::string> answers) {
  std::vector<std::string> lines = kBeforePrecision;
  lines.push_back("fp8");
  lines.insert(lines.end(), answers.begin(), answers.end());
  return interview_after(lines).values().at("fp8_config");
}

}  // namespace

TEST_CASE("questions_dynamo: recorded answers give accelerate's file", "[config]") {
  CHECK(acc::test::file_of("config_no_dynamo_custom") == acc::test::recorded_file("config_no_dynamo_custom"));
}

TEST_CASE("questions_dynamo: the back end that accelerate misspells is offered by its name", "[config]") {
  const acc::launcher::Interview interview =
      acc::test::interview_after({"", "", "", "yes", "torchxla_trace_once"});
  CHECK(interview.values().at("dynamo_config") ==
        acc::launcher::Value{{"dynamo_backend", "TORCHXLA_TRACE_ONCE"}});
}

TEST_CASE("questions_precision: recorded answers give accelerate's file", "[config]") {
  CHECK(acc::test::file_of("config_fp8_ao") == acc::test::recorded_file("config_fp8_ao"));
}

TEST_CASE("questions_precision: keys are those that the library reads", "[config]") {
  // accelerate writes optimization_level, which nothing reads.
  std::string recorded = acc::test::recorded_file("config_fp8_msamp");
  recorded.replace(recorded.find("optimization_level"), std::string("optimization_level").size(),
                   "opt_level");
  CHECK(acc::test::file_of("config_fp8_msamp") == recorded);
}

TEST_CASE("questions_precision: FP8 may be chosen where its library is missing", "[config]") {
  acc::launcher::Interview interview({});
  CHECK_FALSE(acc::test::feed(interview, acc::test::recording("config_fp8_unavailable").at("transcript")));
  CHECK(interview.values().at("mixed_precision") == "fp8");
}

TEST_CASE("questions_precision: TransformerEngine's settings are asked for", "[config]") {
  CHECK(fp8_config({"te", "", "", "", "", "", "", ""}) ==
        Value{{"amax_compute_algo", "max"},
              {"amax_history_len", 1024},
              {"backend", "TE"},
              {"fp8_format", "HYBRID"},
              {"interval", 1},
              {"margin", 0},
              {"override_linear_precision", {false, false, false}},
              {"use_autocast_during_eval", false}});
  CHECK(
      fp8_config({"te", "", "", "", "", "", "", "yes", "yes", "no", "yes"}).at("override_linear_precision") ==
      Value::array({true, false, true}));
}

}  // namespace questions_performance_test
