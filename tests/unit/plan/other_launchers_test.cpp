// SPDX-License-Identifier: Apache-2.0
#include "acc/plan/other_launchers.hpp"

#include "acc/plan/resolve.hpp"
#include "support/catch.hpp"
#include "support/errors.hpp"
#include "support/inputs.hpp"

namespace other_launchers_test {

using acc::launcher::JobShape;
using acc::launcher::Launcher;
using acc::launcher::Settings;
using acc::test::error_of;
using acc::test::inputs;

TEST_CASE("other_launcher: the first name that is on PATH is taken", "[plan]") {
  const acc::launcher::OtherLauncher launcher =
      acc::launcher::find_launcher({"srun", "mpirun"}, acc::test::inputs({"train.py"}));
  CHECK(launcher.command == std::vector<std::string>{"mpirun"});
  CHECK(launcher.file == "/usr/bin/mpirun");
  CHECK_FALSE(launcher.problem);
}

TEST_CASE("other_launcher: one that is missing is a problem of the plan", "[plan]") {
  const acc::launcher::OtherLauncher launcher =
      acc::launcher::find_launcher({"aprun", "jsrun"}, acc::test::inputs({"train.py"}));
  CHECK(launcher.command == std::vector<std::string>{"aprun"});
  REQUIRE(launcher.problem);
  CHECK(to_string(*launcher.problem) ==
        "this job needs aprun or jsrun, which is not on PATH (install it on this machine)");
}

TEST_CASE("mpi: only CPU jobs with a hostfile go through mpirun", "[plan]") {
  const Settings with(inputs({"--mpirun_hostfile", "/h", "train.py"}));
  CHECK(acc::launcher::uses_mpi(JobShape{}, with));
  CHECK_FALSE(acc::launcher::uses_mpi(JobShape{.launcher = Launcher::elastic}, with));
  CHECK_FALSE(acc::launcher::uses_mpi(JobShape{}, Settings(inputs({"train.py"}))));
}

TEST_CASE("mpi: each MPI gets its options", "[plan]") {
  acc::launcher::LaunchInputs launch_inputs = inputs({"--mpirun_hostfile", "/h", "train.py"});
  const JobShape shape{.num_machines = 2, .nproc_per_node = 4};
  const Settings settings(launch_inputs);
  const std::vector<std::string> open_mpi = {"mpirun", "--hostfile", "/h",     "--npernode", "4", "-n",
                                             "8",      "--bind-to",  "socket", "python",     "x"};
  CHECK(acc::launcher::mpi_command(launch_inputs, shape, settings, {"python", "x"}).command == open_mpi);
  launch_inputs.open_mpi = false;
  const std::vector<std::string> hydra = {"mpirun", "-f", "/h", "-ppn", "4", "-n", "8", "python", "x"};
  CHECK(acc::launcher::mpi_command(launch_inputs, shape, settings, {"python", "x"}).command == hydra);
}

TEST_CASE("mpi: Open MPI exports the variables to other machines, other MPIs do so themselves", "[plan]") {
  const acc::Environment added = {{"A", "1"}, {"B", "2"}};
  const std::string list = "OMPI_MCA_mca_base_env_list";
  CHECK(acc::launcher::open_mpi_environment(added, {}) == acc::Environment{{list, "A;B"}});
  CHECK(acc::launcher::open_mpi_environment(added, {{list, "HF_TOKEN"}}) ==
        acc::Environment{{list, "HF_TOKEN;A;B"}});
  CHECK(acc::launcher::open_mpi_environment(added, {{list, "X"}, {list + "_delimiter", ","}}) ==
        acc::Environment{{list, "X,A,B"}});

  acc::launcher::LaunchInputs launch_inputs =
      inputs({"--cpu", "--num_processes", "2", "--mpirun_hostfile", "/h", "train.py"});
  const acc::Environment workers = acc::launcher::resolve(launch_inputs).environment;
  CHECK(workers.get(list).find("ACCELERATE_USE_CPU;") != std::string::npos);
  CHECK(workers.get(list).find("MASTER_ADDR;MASTER_PORT;OMP_NUM_THREADS") != std::string::npos);
  launch_inputs.open_mpi = false;
  CHECK_FALSE(acc::launcher::resolve(launch_inputs).environment.contains(list));
}

TEST_CASE("mpi: several machines need the address of machine 0", "[plan]") {
  const JobShape shape{.num_machines = 2};
  CHECK(acc::launcher::mpi_environment({}, Settings(inputs({"train.py"}))).empty());
  CHECK(acc::launcher::mpi_environment({.nproc_per_node = 2}, Settings(inputs({"train.py"}))) ==
        acc::Environment{{"MASTER_ADDR", "127.0.0.1"}, {"MASTER_PORT", "29500"}});
  CHECK(acc::launcher::mpi_environment(
            shape, Settings(inputs({"--main_process_ip", "a", "--main_process_port", "7", "train.py"}))) ==
        acc::Environment{{"MASTER_ADDR", "a"}, {"MASTER_PORT", "7"}});
  CHECK(error_of([&] {
          acc::launcher::mpi_environment(
              shape, Settings(inputs({"--main_process_ip", "a:7", "--main_process_port", "7", "train.py"})));
        }).starts_with("--main_process_ip: 'a:7' is not the name or address of a machine"));
  CHECK(error_of([&] {
          acc::launcher::mpi_environment(shape, Settings(inputs({"--num_machines", "2", "train.py"})));
        }) ==
        "--num_machines: 2 machines need the address and port of machine 0 (--main_process_ip and "
        "--main_process_port)");
}

}  // namespace other_launchers_test
