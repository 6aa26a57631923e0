// SPDX-License-Identifier: Apache-2.0
#include "acc/plan/other_launchers.hpp"
#include "support/catch.hpp"
#include "support/errors.hpp"
#include "support/inputs.hpp"

namespace other_launchers_tpu_test {

using acc::launcher::Settings;
using acc::launcher::Value;
using acc::test::error_of;
using acc::test::inputs;

TEST_CASE("tpu: bf16 becomes a variable of XLA", "[plan]") {
  const auto plan_of = [](const std::vector<std::string>& words) {
    return acc::launcher::tpu_environment(Settings(inputs(words)));
  };
  CHECK(plan_of({"train.py"}).empty());
  CHECK(plan_of({"--mixed_precision", "bf16", "train.py"}) == acc::Environment{{"XLA_USE_BF16", "1"}});
  CHECK(plan_of({"--mixed_precision", "bf16", "--downcast_bf16", "--debug", "train.py"}) ==
        acc::Environment{{"ACCELERATE_DEBUG_MODE", "true"}, {"XLA_DOWNCAST_BF16", "1"}});
}

TEST_CASE("tpu: Python calls the function of the script", "[plan]") {
  const acc::launcher::LaunchInputs launch_inputs =
      inputs({"--main_training_function", "train_fn", "train.py", "--lr", "1"});
  const std::vector<std::string> command =
      acc::launcher::tpu_command(launch_inputs, Settings(launch_inputs)).command;
  REQUIRE(command.size() == 8);
  CHECK(command[0] == "/usr/bin/python3");
  CHECK(std::vector<std::string>(command.begin() + 3, command.end()) ==
        std::vector<std::string>{"train_fn", "file", "train.py", "--lr", "1"});
  const acc::launcher::LaunchInputs binary = inputs({"--no_python", "train.py"});
  CHECK(error_of([&] { acc::launcher::tpu_command(binary, Settings(binary)); }) ==
        "--no_python: TPU jobs are started by Python (leave --no_python out)");
}

TEST_CASE("tpu: a pod is named, with its machines and their variables", "[plan]") {
  acc::launcher::LaunchInputs launch_inputs =
      inputs({"--vm", "a", "--vm", "b", "--env", "X=1", "--num_processes", "8", "--module", "train"});
  CHECK(error_of([&] { acc::launcher::tpu_pod_command(launch_inputs, Settings(launch_inputs)); }) ==
        "default: the TPU pod has no name (write tpu_name and tpu_zone into the config file)");
  launch_inputs.file = acc::test::file({{"tpu_name", "pod"}, {"tpu_use_sudo", true}, {"tpu_vm", {"c"}}});
  CHECK(acc::launcher::tpu_pod_command(launch_inputs, Settings(launch_inputs)).command ==
        std::vector<std::string>{"/usr/bin/python3",
                                 "-m",
                                 "torch_xla.distributed.xla_dist",
                                 "--tpu=pod",
                                 "--restart-tpuvm-pod-server",
                                 "--vm=a",
                                 "--vm=b",
                                 "--env=ACCELERATE_IN_TPU_POD=1",
                                 "--env=X=1",
                                 "--",
                                 "sudo",
                                 "accelerate-launch",
                                 "--tpu",
                                 "--no_tpu_cluster",
                                 "--num_machines",
                                 "1",
                                 "--mixed_precision",
                                 "no",
                                 "--dynamo_backend",
                                 "no",
                                 "--num_processes",
                                 "8",
                                 "--main_training_function",
                                 "main",
                                 "--module",
                                 "train"});
}

}  // namespace other_launchers_tpu_test
