// SPDX-License-Identifier: Apache-2.0
#include "acc/config/interview.hpp"

#include "support/catch.hpp"
#include "support/transcripts.hpp"

namespace interview_test {

using acc::launcher::Interview;
using acc::test::current_name;
using acc::test::interview_after;

TEST_CASE("interview: empty lines give the defaults: a file for one process", "[config]") {
  Interview interview({});
  int asked = 0;
  for (; interview.current() != nullptr; ++asked) REQUIRE_FALSE(interview.answer(""));
  CHECK(asked == 8);
  CHECK(interview.values().at("distributed_type") == "NO");
  CHECK(interview.values().at("num_processes") == 1);
}

TEST_CASE("interview: yes and no may be y and n, in any case", "[config]") {
  for (const char* word : {"y", "Y", "yes", "YES"}) {
    Interview interview = interview_after({"", ""});
    CHECK_FALSE(interview.answer(word));
    CHECK(interview.values().at("use_cpu") == true);
  }
  CHECK(interview_after({"", "", "N"}).values().at("use_cpu") == false);
}

TEST_CASE("interview: a refused answer has a reason, and the question stays", "[config]") {
  Interview interview = interview_after({"", ""});
  CHECK(interview.answer("maybe") == "answer yes or no, not 'maybe'");
  CHECK(current_name(interview) == "use_cpu");

  interview = interview_after({"", "multi-GPU"});
  CHECK(interview.answer("two") == "'two' is not a whole number");
  CHECK(interview.answer("0") == "num_machines must be at least 1, not 0");
  CHECK(interview.answer("-1") == "the number must not be negative");
  CHECK_FALSE(interview.answer(" 2 "));
  CHECK(interview.answer("5") == "'5' is not one of: 0, 1");
  CHECK_FALSE(interview.answer("1"));
  CHECK(interview.answer("") == "an answer is required");
  CHECK_FALSE(interview.answer("10.0.0.1"));
  CHECK(interview.answer("70000") == "main_process_port must be at most 65535, not 70000");
}

TEST_CASE("interview: accelerate's transcript with refused answers leads to the same file", "[config]") {
  // `y` is an answer here; accelerate asks again, so its transcript has one more answer.
  auto transcript = acc::test::recording("config_no_invalid_then_valid").at("transcript");
  transcript.erase(3);
  Interview interview({});
  CHECK_FALSE(acc::test::feed(interview, transcript));
  CHECK(acc::launcher::format_config(interview.values(), "c.yaml") ==
        acc::test::recorded_file("config_no_invalid_then_valid"));
}

TEST_CASE("interview: a choice is found by its text, then by its index", "[config]") {
  CHECK(interview_after({"", "4"}).values().at("distributed_type") == "MULTI_GPU");
  CHECK(interview_after({"", "Multi-gpu"}).values().at("distributed_type") == "MULTI_GPU");
  const std::vector<std::string> to_version = {"", "multi-GPU", "", "", "", "", "yes"};
  for (const std::string version : {"1", "2"}) {
    Interview interview = interview_after(to_version);
    CHECK_FALSE(interview.answer(version));
    CHECK(interview.values().at("fsdp_config").at("fsdp_version") == std::stoi(version));
  }
}

}  // namespace interview_test
