// SPDX-License-Identifier: Apache-2.0
#include "support/catch.hpp"
#include "support/transcripts.hpp"

namespace questions_sharding_test {

using acc::test::current_name;

TEST_CASE("questions_deepspeed: recorded answers give accelerate's file", "[config]") {
  const std::string name = GENERATE("config_deepspeed_file", "config_deepspeed_multinode_standard",
                                    "config_deepspeed_zero2", "config_deepspeed_zero3_nvme_moe");
  INFO(name);
  CHECK(acc::test::file_of(name) == acc::test::recorded_file(name));
}

TEST_CASE("questions_deepspeed: Neuron is refused, and earlier answers stay", "[config]") {
  acc::launcher::Interview interview({});
  const auto transcript = acc::test::recording("config_multi_neuron_deepspeed_refused").at("transcript");
  CHECK(acc::test::feed(interview, transcript) == "DeepSpeed does not run on Neuron");
  CHECK(current_name(interview) == "deepspeed");
  CHECK(interview.values().at("distributed_type") == "MULTI_NEURON");
}

TEST_CASE("questions_deepspeed: it may be chosen where it is not installed", "[config]") {
  acc::launcher::Interview interview({});
  CHECK_FALSE(acc::test::feed(interview, acc::test::recording("config_deepspeed_missing").at("transcript")));
  CHECK(interview.values().at("distributed_type") == "DEEPSPEED");
}

TEST_CASE("questions_deepspeed: asks for hostfile and filters if the launcher needs them", "[config]") {
  const acc::launcher::Interview interview =
      acc::test::interview_after({"",    "multi-GPU", "2", "0", "h",    "29500",  "",    "",  "",    "yes",
                                  "yes", "ds.json",   "",  "",  "pdsh", "/hosts", "yes", "x", "yes", "y"});
  CHECK(interview.values().at("deepspeed_config") ==
        acc::launcher::Value{{"deepspeed_config_file", "ds.json"},
                             {"deepspeed_exclusion_filter", "x"},
                             {"deepspeed_hostfile", "/hosts"},
                             {"deepspeed_inclusion_filter", "y"},
                             {"deepspeed_multinode_launcher", "pdsh"},
                             {"zero3_init_flag", false}});
}

TEST_CASE("questions_fsdp: recorded answers give accelerate's file", "[config]") {
  const std::string name = GENERATE("config_fsdp1_all", "config_fsdp1_no_wrap", "config_fsdp2_parallelism");
  INFO(name);
  CHECK(acc::test::file_of(name) == acc::test::recorded_file(name));
}

TEST_CASE("questions_fsdp: Neuron is refused, and earlier answers stay", "[config]") {
  acc::launcher::Interview interview({});
  const auto transcript = acc::test::recording("config_multi_neuron_fsdp_refused").at("transcript");
  CHECK(acc::test::feed(interview, transcript) == "FSDP does not run on Neuron");
  CHECK(acc::test::current_name(interview) == "fsdp");
}

TEST_CASE("questions_fsdp: version 1 asks for sync_module_states without efficient loading", "[config]") {
  const acc::launcher::Interview interview = acc::test::interview_after(
      {"", "multi-GPU", "", "", "", "", "yes", "1", "", "", "NO_WRAP", "", "", "", "", "no"});
  CHECK(acc::test::current_name(interview) == "fsdp_sync_module_states");
}

TEST_CASE("questions_megatron: recorded answers give accelerate's file", "[config]") {
  const std::string name = GENERATE("config_megatron", "config_megatron_tp1_pp1");
  INFO(name);
  CHECK(acc::test::file_of(name) == acc::test::recorded_file(name));
}

}  // namespace questions_sharding_test
