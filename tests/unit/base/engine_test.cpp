// SPDX-License-Identifier: Apache-2.0
#include "acc/base/engine.hpp"

#include "support/catch.hpp"
#include "support/engine_environments.hpp"
#include "support/errors.hpp"

namespace engine_test {

using acc::Engine;
using acc::Environment;
using acc::find_engine;
using acc::test::engine_environment;
using acc::test::engine_inside_slurm;
using acc::test::error_of;

namespace {

Environment with(Environment environment, const Environment& over) {
  environment.overlay(over);
  return environment;
}

}  // namespace

TEST_CASE("engine: without one there is nothing to ask", "[base]") {
  CHECK(find_engine({}) == Engine{});
  CHECK_FALSE(find_engine({{"PATH", "/bin"}, {"RANK", "1"}, {"WORLD_SIZE", "2"}}));
  CHECK(acc::engine_name({}).empty());
}

TEST_CASE("engine: of an mpirun inside of Slurm the mpirun counts", "[base]") {
  for (const std::string section : {"mpirun", "hydra", "srun"}) {
    for (const int node : {0, 1}) {
      Environment environment = engine_inside_slurm(section, "node" + std::to_string(node));
      if (section == "hydra") environment.overlay({{"PMI_SIZE", "2"}, {"MPI_LOCALNRANKS", "1"}});
      if (section == "srun") environment.overlay({{"SLURM_STEP_NUM_NODES", "2"}});
      CAPTURE(section, node);
      const Engine engine = find_engine(environment);
      CHECK(engine.name == (section == "mpirun" ? "Open MPI" : section == "hydra" ? "MPI (Hydra)" : "Slurm"));
      REQUIRE(engine.size);
      CHECK(engine.size->value == 2);
      CHECK(engine.rank->value == node);
      CHECK_FALSE(engine.several_per_node);
    }
  }
}

TEST_CASE("engine: a worker of torchrun or acc has left the engine behind", "[base]") {
  const Environment task = engine_environment("slurm_srun_n2.env", 1);
  CHECK_FALSE(find_engine(with(task, {{"TORCHELASTIC_RUN_ID", "2.0.0"}})));
}

TEST_CASE("engine: one that is chosen must be there", "[base]") {
  const Environment task = engine_inside_slurm("mpirun", "node0");
  CHECK(find_engine(task, "slurm").name == "Slurm");
  CHECK(find_engine(task, "mpi").name == "Open MPI");
  CHECK_FALSE(find_engine(task, "none"));
  CHECK(error_of([] { find_engine({}, "slurm"); }) ==
        "no engine 'slurm' started this process: none of SLURM_JOB_ID is set (drop --engine and ACC_ENGINE)");
  CHECK(error_of([] { find_engine({}, "ssh"); }) ==
        "ACC_ENGINE: 'ssh' is not an engine (auto, slurm, mpi, k8s or none)");
}

TEST_CASE("engine: a malformed number is named", "[base]") {
  CHECK(error_of([] { find_engine({{"OMPI_COMM_WORLD_RANK", "one"}}); }) ==
        "OMPI_COMM_WORLD_RANK: must be a whole number of at least 0, not 'one' (the engine sets it; --engine "
        "none "
        "ignores it)");
  CHECK(find_engine({{"OMPI_COMM_WORLD_RANK", "2"}, {"OMPI_COMM_WORLD_SIZE", "2"}}).problem);
}

TEST_CASE("engine: names of engines and schedulers, with the job", "[base]") {
  CHECK(acc::engine_name({{"SLURM_JOB_ID", "17"}}) == "Slurm (job 17)");
  CHECK(acc::engine_name({{"PBS_JOBID", "3.host"}}) == "PBS (job 3.host)");
  CHECK(acc::engine_name({{"KUBERNETES_SERVICE_HOST", "h"}}) == "Kubernetes");
  CHECK(acc::engine_name({{"OMPI_COMM_WORLD_RANK", "0"}, {"SLURM_JOB_ID", "17"}}) == "Open MPI");
}

TEST_CASE("engine: each gives its own time between SIGTERM and SIGKILL", "[base]") {
  using std::chrono::seconds;
  const auto grace = [](const Environment& environment) { return acc::engine_stop(environment)->grace; };
  CHECK_FALSE(acc::engine_stop({{"PATH", "/bin"}}));
  CHECK(acc::engine_stop({{"SLURM_JOB_ID", "4"}}) ==
        acc::EngineStop{"Slurm", seconds(30), "KillWait of slurm.conf"});
  CHECK(acc::engine_stop({{"KUBERNETES_SERVICE_HOST", "10.0.0.1"}}) ==
        acc::EngineStop{"Kubernetes", seconds(30), "terminationGracePeriodSeconds of the pod"});
  CHECK(grace({{"LWS_WORKER_INDEX", "0"}}) == seconds(30));
  CHECK(grace({{"FLUX_JOB_ID", "f1"}}) == seconds(5));
  // The innermost ends its processes first.
  const Environment mpirun = with(engine_inside_slurm("mpirun", "node1"), {{"OMPI_COMM_WORLD_RANK", "1"}});
  CHECK(acc::engine_stop(mpirun) == acc::EngineStop{"Open MPI", seconds(1), "odls_base_sigkill_timeout"});
  CHECK(grace(with(mpirun, {{"OMPI_MCA_odls_base_sigkill_timeout", "60"}})) == seconds(60));
  CHECK_FALSE(grace({{"PMI_RANK", "0"}, {"MPI_LOCALRANKID", "0"}}));
  CHECK_FALSE(grace({{"SGE_TASK_ID", "1"}}));
  // Workers of acc are signalled by Slurm like all others.
  CHECK(grace({{"SLURM_JOB_ID", "4"}, {"TORCHELASTIC_RUN_ID", "4.0.0"}}) == seconds(30));
}

}  // namespace engine_test
