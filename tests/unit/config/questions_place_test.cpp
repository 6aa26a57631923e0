// SPDX-License-Identifier: Apache-2.0
#include "support/catch.hpp"
#include "support/transcripts.hpp"

using acc::test::current_name;
using acc::test::file_of;
using acc::test::interview_after;
using acc::test::recorded_file;

TEST_CASE("questions_place: recorded answers give accelerate's file", "[config]") {
  const std::string name =
      GENERATE("config_no_defaults", "config_multi_gpu", "config_multi_gpu_two_nodes_cloud",
               "config_multi_hpu", "config_multi_xpu", "config_multi_sdaa", "config_multi_neuron");
  INFO(name);
  CHECK(file_of(name) == recorded_file(name));
}

TEST_CASE("questions_place: mpirun's hostfile is asked for on CPUs, and ~ is expanded", "[config]") {
  const acc::launcher::Interview interview = interview_after({"", "multi-CPU", "", "", "yes", ""});
  CHECK(interview.values().at("use_cpu") == true);
  CHECK(interview.values().at("mpirun_config") ==
        acc::launcher::Value{{"mpirun_hostfile", "/home/user/hostfile"}});
}

TEST_CASE("questions_place: the rank of a machine is one of as many as there are", "[config]") {
  const acc::launcher::Interview interview = interview_after({"", "multi-GPU", "3"});
  CHECK(current_name(interview) == "machine_rank");
  CHECK(interview.choices().size() == 3);
}

TEST_CASE("questions_place: of many machines the rank is a number below theirs", "[config]") {
  acc::launcher::Interview interview = interview_after({"", "multi-GPU", "1000000"});
  CHECK(current_name(interview) == "machine_rank_number");
  CHECK(interview.choices().empty());
  CHECK(interview.answer("1000000") == "ranks of 1000000 machines are 0 to 999999");
  CHECK_FALSE(interview.answer("999999").has_value());
  CHECK(interview.values().at("machine_rank") == 999999);
}
