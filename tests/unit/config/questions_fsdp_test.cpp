// SPDX-License-Identifier: Apache-2.0
#include "support/catch.hpp"
#include "support/transcripts.hpp"

TEST_CASE("questions_fsdp: recorded answers give accelerate's file", "[config]") {
  const std::string name = GENERATE("config_fsdp1_all", "config_fsdp1_no_wrap", "config_fsdp2_parallelism");
  INFO(name);
  CHECK(acc::test::file_of(name) == acc::test::recorded_file(name));
}

TEST_CASE("questions_fsdp: Neuron is refused, and no answer is lost", "[config]") {
  acc::launcher::Interview interview({});
  const auto transcript = acc::test::recording("config_multi_neuron_fsdp_refused").at("transcript");
  CHECK(acc::test::feed(interview, transcript) == "FSDP does not run on Neuron");
  CHECK(acc::test::current_name(interview) == "fsdp");
}

TEST_CASE("questions_fsdp: version 1 asks for what loading on every rank leaves open", "[config]") {
  const acc::launcher::Interview interview = acc::test::interview_after(
      {"", "multi-GPU", "", "", "", "", "yes", "1", "", "", "NO_WRAP", "", "", "", "", "no"});
  CHECK(acc::test::current_name(interview) == "fsdp_sync_module_states");
}
