// SPDX-License-Identifier: Apache-2.0
#include "acc/plan/deepspeed.hpp"

#include "support/catch.hpp"
#include "support/errors.hpp"
#include "support/inputs.hpp"

namespace deepspeed_test {

using acc::launcher::DistributedType;
using acc::launcher::JobShape;
using acc::launcher::Launcher;
using acc::launcher::Settings;
using acc::launcher::Value;
using acc::test::error_of;
using acc::test::inputs;
namespace key = acc::launcher::key;

namespace {

const JobShape kTwoMachines{.launcher = Launcher::deepspeed,
                            .distributed_type = DistributedType::deepspeed,
                            .num_machines = 2,
                            .machine_rank = 1,
                            .nproc_per_node = 4};

std::vector<std::string> command_of(std::vector<std::string> words) {
  words.insert(words.end(), {"--deepspeed_hostfile", "/h", "--main_process_ip", "a", "train.py", "x"});
  const acc::launcher::LaunchInputs launch_inputs = inputs(words);
  return acc::launcher::deepspeed_command(launch_inputs, kTwoMachines, Settings(launch_inputs)).command;
}

}  // namespace

TEST_CASE("deepspeed: its command starts several machines, unless each starts its own", "[plan]") {
  CHECK(acc::launcher::uses_deepspeed_command(kTwoMachines, Settings(inputs({"train.py"}))));
  CHECK_FALSE(acc::launcher::uses_deepspeed_command(
      kTwoMachines, Settings(inputs({"--deepspeed_multinode_launcher", "standard", "train.py"}))));
  CHECK_FALSE(acc::launcher::uses_deepspeed_command({.distributed_type = DistributedType::deepspeed},
                                                    Settings(inputs({"train.py"}))));
}

TEST_CASE("deepspeed: every launcher gets its options", "[plan]") {
  const std::string name = GENERATE("pdsh", "openmpi", "mpich", "mvapich", "impi", "slurm");
  CHECK(command_of({"--deepspeed_multinode_launcher", name}) ==
        std::vector<std::string>{"deepspeed", "--hostfile", "/h", "--no_local_rank", "--launcher", name,
                                 "--num_gpus", "4", "--master_addr", "a", "--master_port", "29500",
                                 "train.py", "x"});
}

TEST_CASE("deepspeed: without ssh each machine says its rank; filters replace the number of GPUs", "[plan]") {
  CHECK(command_of({"--deepspeed_multinode_launcher", "nossh", "--deepspeed_exclusion_filter", "w:1",
                    "--deepspeed_inclusion_filter", "v", "--main_process_port", "7", "-m"}) ==
        std::vector<std::string>{"deepspeed", "--hostfile", "/h", "--node_rank", "1", "--no_ssh", "--exclude",
                                 "w:1", "--master_addr", "a", "--master_port", "7", "--module", "train.py",
                                 "x"});
}

TEST_CASE("deepspeed: a launcher without hostfile is refused", "[plan]") {
  const acc::launcher::LaunchInputs launch_inputs = inputs({"--num_machines", "2", "train.py"});
  CHECK(error_of([&] {
          acc::launcher::deepspeed_command(launch_inputs, kTwoMachines, Settings(launch_inputs));
        }) ==
        "--num_machines: DeepSpeed's launcher pdsh needs a hostfile (--deepspeed_hostfile FILE, or "
        "--deepspeed_multinode_launcher standard and acc on every machine)");
}

TEST_CASE("deepspeed: workers get the settings, NVMe folders too, and the keys that the file said",
          "[plan]") {
  acc::launcher::LaunchInputs launch_inputs = inputs({"--deepspeed_config_file", "none", "train.py"});
  launch_inputs.file = acc::test::file({{"zero_stage", 3},
                                        {"offload_param_nvme_path", "/nvme"},
                                        {"zero3_init_flag", true},
                                        {"mixed_precision", "bf16"}});
  launch_inputs.file_order = {key::mixed_precision, key::zero3_init_flag, key::zero_stage,
                              key::offload_param_nvme_path};
  launch_inputs.environment.set("PYTHONPATH", "/mine");
  CHECK(acc::launcher::deepspeed_environment(launch_inputs, Settings(launch_inputs)) ==
        acc::Environment{{"ACCELERATE_CONFIG_DS_FIELDS",
                          "zero3_init_flag,zero_stage,offload_param_nvme_path,mixed_precision"},
                         {"ACCELERATE_DEEPSPEED_OFFLOAD_PARAM_NVME_PATH", "/nvme"},
                         {"ACCELERATE_DEEPSPEED_ZERO3_INIT", "true"},
                         {"ACCELERATE_DEEPSPEED_ZERO_STAGE", "3"},
                         {"ACCELERATE_USE_DEEPSPEED", "true"},
                         {"PYTHONPATH", "/mine:/job"}});
}

TEST_CASE("deepspeed: settings that DeepSpeed's own file sets are refused", "[plan]") {
  acc::launcher::LaunchInputs launch_inputs = inputs({"--gradient_clipping", "1", "train.py"});
  launch_inputs.file =
      acc::test::file({{"deepspeed_config_file", "ds.json"}, {"zero3_init_flag", true}, {"zero_stage", 2}});
  const std::vector<acc::Problem> problems = acc::launcher::deepspeed_problems(Settings(launch_inputs));
  REQUIRE(problems.size() == 1);
  CHECK(
      to_string(problems[0]) ==
      "job.yaml:3: zero_stage conflicts with deepspeed_config_file, which sets it (set it in one of the two "
      "files)");
}

TEST_CASE("deepspeed: .deepspeed_env has each variable of acc once, and keeps others", "[plan]") {
  CHECK(acc::launcher::with_lines("", {"A=1", "B=x y", "C="}) == "A=1\n");
  CHECK(acc::launcher::with_lines("X=1\nA=0\nAB=2\n", {"A=1"}) == "X=1\nAB=2\nA=1\n");
}

}  // namespace deepspeed_test
