// SPDX-License-Identifier: Apache-2.0
#include "support/catch.hpp"
#include "support/transcripts.hpp"

namespace questions_machines_test {

using acc::test::current_name;
using acc::test::file_of;
using acc::test::interview_after;
using acc::test::recorded_file;

namespace {

const std::vector<std::string> kFsdp = {"", "multi-GPU", "", "",    "", "", "yes", "",
                                        "", "",          "", "yes", "", "", "",    ""};
const std::vector<std::string> kOneMachine = {"", "multi-GPU", "", "", "", "", "", ""};

}  // namespace

TEST_CASE("questions_machines: recorded answers give accelerate's file", "[config]") {
  const std::string name =
      GENERATE("config_no_defaults", "config_multi_gpu", "config_multi_gpu_two_nodes_cloud",
               "config_multi_hpu", "config_multi_xpu", "config_multi_sdaa", "config_multi_neuron");
  INFO(name);
  CHECK(file_of(name) == recorded_file(name));
}

TEST_CASE("questions_machines: mpirun's hostfile is asked for on CPUs, and ~ is expanded", "[config]") {
  const acc::launcher::Interview interview = interview_after({"", "multi-CPU", "", "", "yes", ""});
  CHECK(interview.values().at("use_cpu") == true);
  CHECK(interview.values().at("mpirun_config") ==
        acc::launcher::Value{{"mpirun_hostfile", "/home/user/hostfile"}});
}

TEST_CASE("questions_machines: the rank of a machine is one of as many as there are", "[config]") {
  const acc::launcher::Interview interview = interview_after({"", "multi-GPU", "3"});
  CHECK(current_name(interview) == "machine_rank");
  CHECK(interview.choices().size() == 3);
}

TEST_CASE("questions_machines: of many machines the rank is a number below theirs", "[config]") {
  acc::launcher::Interview interview = interview_after({"", "multi-GPU", "1000000"});
  CHECK(current_name(interview) == "machine_rank_number");
  CHECK(interview.choices().empty());
  CHECK(interview.answer("1000000") == "ranks of 1000000 machines are 0 to 999999");
  CHECK_FALSE(interview.answer("999999").has_value());
  CHECK(interview.values().at("machine_rank") == 999999);
}

TEST_CASE("questions_machines: the address of machine 0 has no port, and names a machine", "[config]") {
  acc::launcher::Interview interview = interview_after({"", "multi-GPU", "2", ""});
  CHECK(current_name(interview) == "main_process_ip");
  CHECK(interview.answer("10.0.0.1:29500") ==
        "'10.0.0.1:29500' is not the name or address of a machine; its port is the next question");
  CHECK(interview.answer(":::").has_value());
  CHECK_FALSE(interview.answer("fd00::1").has_value());
  CHECK(interview.values().at("main_process_ip") == "fd00::1");
}

TEST_CASE("questions_machines: the rendezvous backend is one that a launch knows", "[config]") {
  acc::launcher::Interview interview = interview_after({"", "multi-GPU", "2", "", "node0", "29500", "no"});
  CHECK(current_name(interview) == "rdzv_backend");
  CHECK(interview.answer("foo") == "'foo' is not one of: static, c10d, etcd");
  CHECK(current_name(interview) == "rdzv_backend");
  CHECK_FALSE(interview.answer("c10d").has_value());
}

TEST_CASE("questions_device: one process of many GPUs is refused, and the question stays", "[config]") {
  acc::launcher::Interview interview = interview_after(kOneMachine);
  CHECK(acc::test::current_name(interview) == "num_processes");
  CHECK(interview.answer("1") == "multi-GPU training on one machine needs two processes or more");
  CHECK_FALSE(interview.answer("2"));
  CHECK(interview.values().at("num_processes") == 2);
}

TEST_CASE("questions_device: the GPUs of this machine are the default", "[config]") {
  CHECK(interview_after(kOneMachine, 8).default_answer() == "8");
  CHECK(interview_after(kOneMachine, 0).default_answer() == "2");
}

TEST_CASE("questions_device: sharded jobs and those of several machines have a process for each GPU, too",
          "[config]") {
  CHECK(acc::test::current_name(interview_after(kFsdp, 8)) == "num_processes");
  CHECK(interview_after(kFsdp, 8).default_answer() == "8");
  CHECK(interview_after(kFsdp, 0).default_answer() == "1");
  const std::vector<std::string> two_machines = {"", "multi-GPU", "2", "", "10.0.0.1", "29500",
                                                 "", "",          "",  "", "",         ""};
  CHECK(acc::test::current_name(interview_after(two_machines, 8)) == "num_processes");
  CHECK(interview_after(two_machines, 8).default_answer() == "16");
}

TEST_CASE("questions_device: processes that machines cannot share evenly are refused", "[config]") {
  acc::launcher::Interview interview =
      interview_after({"", "multi-GPU", "2", "0", "10.0.0.1", "29500", "", "", "", "", "", ""});
  CHECK(interview.answer("7") == "7 processes cannot be divided evenly among 2 machines");
  CHECK_FALSE(interview.answer("8"));
}

TEST_CASE("questions_device: on the CPU there are no questions about GPUs", "[config]") {
  const acc::launcher::Interview interview = interview_after({"", "", "yes", "", ""});
  CHECK(acc::test::current_name(interview) == "mixed_precision");
  CHECK_FALSE(interview.values().contains("gpu_ids"));
}

}  // namespace questions_machines_test
