// SPDX-License-Identifier: Apache-2.0
#include "acc/plan/config_check.hpp"

#include <filesystem>

#include "support/catch.hpp"

namespace config_check_test {

namespace {

std::vector<std::string> found_in(const std::string& yaml) {
  std::vector<std::string> lines;
  for (const acc::Problem& problem : launch_problems(acc::launcher::parse_config(yaml, "c.yaml")))
    lines.push_back(to_string(problem));
  return lines;
}

}  // namespace

TEST_CASE("config check: what every launch with the file would refuse is told, with its line", "[plan]") {
  const std::string one = "distributed_type: MULTI_GPU\nnum_processes: 2\n";
  const std::string two = one + "num_machines: 2\nmain_process_ip: h\n";
  const std::string fsdp = "distributed_type: FSDP\nnum_processes: 2\nfsdp_config:\n";
  const std::vector<std::pair<std::string, std::string>> refused = {
      {one + "rdzv_backend: foo\n", "c.yaml:3: 'foo' is not a rendezvous back end"},
      {one + "memory_checkpoints: 8\n", "c.yaml:3: '8' is not a size"},
      {one + "preload: 1x\n", "c.yaml:3: '1x' is not the name of a module"},
      {two + "main_process_port: 0\n", "c.yaml:5: several machines cannot meet at port 0"},
      {"distributed_type: NO\nnum_machines: 2\nmain_process_ip: h\nnum_processes: 2\n",
       "c.yaml:1 (distributed_type = NO) and c.yaml:2 (num_machines = 2) contradict each other"},
      {"distributed_type: MULTI_GPU\nnum_processes: auto\nnum_machines: 2\nmain_process_ip: h\n",
       "c.yaml:2: num_processes auto counts on one machine"},
      {"distributed_type: MULTI_GPU\nnum_processes: 2\ngpu_ids: 0,,1\n", "c.yaml:3: '' in '0,,1'"},
      {"distributed_type: XLA\nnum_processes: 8\ntpu_use_cluster: true\n",
       "c.yaml:3: the TPU pod has no name"},
      {fsdp + "  fsdp_version: 2\n  fsdp_state_dict_type: LOCAL_STATE_DICT\n", "c.yaml:5: version 2 of FSDP"},
      {fsdp + "  fsdp_version: 2\n  fsdp_reshard_after_forward: FULL_SHARD\n",
       "c.yaml:5: fsdp_reshard_after_forward is true or false in version 2"},
      {fsdp + "  fsdp_sync_module_states: false\n", "c.yaml:4: fsdp_cpu_ram_efficient_loading needs"},
      {"distributed_type: DEEPSPEED\nnum_processes: 2\ndeepspeed_config:\n  deepspeed_config_file: d.json\n"
       "  zero_stage: 2\n",
       "c.yaml:5: zero_stage conflicts with deepspeed_config_file"},
  };
  for (const auto& [yaml, text] : refused) {
    INFO(yaml);
    const auto lines = found_in(yaml);
    REQUIRE(lines.size() == 1);
    CHECK(lines.front().substr(0, text.size()) == text);
  }
}

TEST_CASE("config check: what depends on the machine is left to the launch", "[plan]") {
  CHECK(found_in("{distributed_type: MULTI_GPU, num_processes: 8, gpu_ids: '0,7'}").empty());
  CHECK(found_in("{distributed_type: MULTI_GPU, num_processes: 2, gpu_ids: 'GPU-aa,GPU-bb'}").empty());
  CHECK(found_in("{distributed_type: MULTI_GPU, preload: torch, enable_cpu_affinity: true}").empty());
  CHECK(found_in("{distributed_type: FSDP, num_machines: 2, num_processes: 16, main_process_ip: nowhere}")
            .empty());
  CHECK(found_in("{distributed_type: MULTI_CPU, num_processes: 4, mpirun_config: {mpirun_hostfile: h}}")
            .empty());
}

TEST_CASE("config check: a file of accelerate's questionnaire can be launched", "[plan]") {
  for (const auto& entry : std::filesystem::directory_iterator(ACC_TEST_DATA "/config_corpus")) {
    INFO(entry.path());
    const acc::launcher::ConfigReport report = acc::launcher::inspect_config(entry.path());
    if (!report.problems.empty()) continue;
    for (const acc::Problem& problem : launch_problems(report.config)) CHECK(to_string(problem).empty());
  }
}

}  // namespace config_check_test
