// SPDX-License-Identifier: Apache-2.0
#include "support/catch.hpp"
#include "support/transcripts.hpp"

using acc::test::interview_after;

namespace {

const std::vector<std::string> kOneMachine = {"", "multi-GPU", "", "", "", "", "", ""};

}  // namespace

TEST_CASE("questions_device: one process of many GPUs is refused, and the question stays", "[config]") {
  acc::launcher::Interview interview = interview_after(kOneMachine);
  CHECK(acc::test::current_name(interview) == "num_processes");
  CHECK(interview.answer("1") == "multi-GPU training on one machine needs two processes or more");
  CHECK_FALSE(interview.answer("2"));
  CHECK(interview.values().at("num_processes") == 2);
}

TEST_CASE("questions_device: the GPUs of this machine are the default", "[config]") {
  CHECK(interview_after(kOneMachine, 8).otherwise() == "8");
  CHECK(interview_after(kOneMachine, 0).otherwise() == "2");
}

TEST_CASE("questions_device: processes that machines cannot share evenly are refused", "[config]") {
  acc::launcher::Interview interview =
      interview_after({"", "multi-GPU", "2", "0", "10.0.0.1", "29500", "", "", "", "", "", ""});
  CHECK(interview.answer("7") == "7 processes cannot be shared evenly by 2 machines");
  CHECK_FALSE(interview.answer("8"));
}

TEST_CASE("questions_device: on the CPU nobody is asked for GPUs", "[config]") {
  const acc::launcher::Interview interview = interview_after({"", "", "yes", "", ""});
  CHECK(acc::test::current_name(interview) == "mixed_precision");
  CHECK_FALSE(interview.values().contains("gpu_ids"));
}
