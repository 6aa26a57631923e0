// SPDX-License-Identifier: Apache-2.0
#include "acc/config/read.hpp"
#include "support/catch.hpp"

namespace read_contradictions_test {

namespace {

std::vector<std::string> found_in(const std::string& yaml) {
  std::vector<std::string> lines;
  for (const acc::Problem& problem : contradictions(acc::launcher::parse_config(yaml, "c.yaml")))
    lines.push_back(to_string(problem));
  return lines;
}

}  // namespace

TEST_CASE("contradictions: a file that holds together has none", "[config]") {
  CHECK(found_in("distributed_type: NO\n").empty());
  CHECK(found_in("{distributed_type: MULTI_GPU, num_machines: 2, num_processes: 8, machine_rank: 1, "
                 "main_process_ip: h}")
            .empty());
}

TEST_CASE("contradictions: SageMaker's machines need no address", "[config]") {
  CHECK(found_in("{compute_environment: AMAZON_SAGEMAKER, distributed_type: DATA_PARALLEL, num_machines: 2, "
                 "ec2_instance_type: x, iam_role_name: y}")
            .empty());
}

TEST_CASE("contradictions: all are told, each with both sides", "[config]") {
  CHECK(found_in("distributed_type: MULTI_GPU\nnum_processes: 7\nnum_machines: 2\nmachine_rank: 2\n") ==
        std::vector<std::string>{"c.yaml:2: num_processes 7 cannot be divided evenly among num_machines 2 "
                                 "(num_processes counts over "
                                 "all machines)",
                                 "c.yaml:4: machine_rank 2 is not below num_machines 2 (ranks count from 0)",
                                 "c.yaml:3: num_machines 2 need main_process_ip (the address of machine 0)"});
}

TEST_CASE("contradictions: several machines need an address that names one", "[config]") {
  const auto found = [](const std::string& address) {
    return found_in("distributed_type: MULTI_CPU\nnum_machines: 2\nmain_process_ip: " + address + "\n");
  };
  CHECK(found("''") ==
        std::vector<std::string>{"c.yaml:2: num_machines 2 need main_process_ip (the address of machine 0)"});
  CHECK(found("10.0.0.1:29500") ==
        std::vector<std::string>{"c.yaml:3: main_process_ip '10.0.0.1:29500' is not the name or address of a "
                                 "machine (the port is main_process_port)"});
  CHECK(found("'[fd00::1]'").empty());
  CHECK(found_in("distributed_type: MULTI_CPU\nmain_process_ip: ''\n").empty());
}

TEST_CASE("contradictions: processes of MULTI_GPU need a GPU each, as accelerate asks at the launch",
          "[config]") {
  const std::string two = "distributed_type: MULTI_GPU\nnum_processes: 2\ngpu_ids: ";
  CHECK(found_in(two + "foo bar\n") ==
        std::vector<std::string>{
            "c.yaml:3: gpu_ids names one GPU, and 2 processes are to share it (name one per "
            "process, or `all`)"});
  for (const char* ids : {"all", "'0,1'", "GPU-a, GPU-b"}) CHECK(found_in(two + ids + "\n").empty());
  CHECK(found_in("distributed_type: MULTI_GPU\nnum_processes: 1\ngpu_ids: '3'\n").empty());
}

TEST_CASE("keys without effect: sections of another type are told, empty ones are not", "[config]") {
  const auto found = [](const std::string& yaml) {
    std::vector<std::string> lines;
    for (const acc::Problem& problem : keys_without_effect(acc::launcher::parse_config(yaml, "c.yaml")))
      lines.push_back(to_string(problem));
    return lines;
  };
  CHECK(found("distributed_type: MULTI_GPU\nuse_cpu: true\nfsdp_config: {fsdp_version: 2}\n"
              "deepspeed_config: {}\nmegatron_lm_config: {tp_degree: 2}\n") ==
        std::vector<std::string>{"c.yaml:3: fsdp_config has no effect with distributed_type MULTI_GPU",
                                 "c.yaml:5: megatron_lm_config has no effect with distributed_type MULTI_GPU",
                                 "c.yaml:2: use_cpu has no effect with distributed_type MULTI_GPU"});
  CHECK(found("distributed_type: FSDP\ndeepspeed_config: {zero_stage: 2}\n") ==
        std::vector<std::string>{"c.yaml:2: deepspeed_config has no effect with distributed_type FSDP"});
  CHECK(found("distributed_type: MULTI_GPU\nmixed_precision: bf16\nfp8_config: {fp8_backend: TE}\n") ==
        std::vector<std::string>{"c.yaml:3: fp8_config has no effect with mixed_precision bf16"});
  CHECK(found("{distributed_type: FSDP, fsdp_config: {fsdp_version: 2}, parallelism_config: {tp_size: 2}}")
            .empty());
  CHECK(found("{distributed_type: MULTI_CPU, use_cpu: true, mpirun_config: {mpirun_hostfile: h}}").empty());
}

TEST_CASE("keys without effect: files of accelerate's questionnaire have none", "[config]") {
  for (const auto& entry : std::filesystem::directory_iterator(ACC_TEST_DATA "/config_corpus")) {
    INFO(entry.path());
    if (entry.path().filename().string().starts_with("launch_")) continue;
    CHECK(keys_without_effect(acc::launcher::inspect_config(entry.path()).config).empty());
  }
}

}  // namespace read_contradictions_test
