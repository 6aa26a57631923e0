// SPDX-License-Identifier: Apache-2.0
#include "acc/base/worker_env.hpp"

#include "support/catch.hpp"
#include "support/engine_environments.hpp"
#include "support/errors.hpp"

namespace worker_env_test {

using acc::Environment;
using acc::WorkerEnv;
using acc::test::error_of;

TEST_CASE("worker_env: the runtime reads what the launcher writes", "[base]") {
  WorkerEnv sent;
  sent.rank = 5;
  sent.local_rank = 1;
  sent.world_size = 8;
  sent.local_world_size = 4;
  sent.group_rank = 1;
  sent.group_world_size = 2;
  sent.role_name = "trainer";
  sent.role_rank = 5;
  sent.role_world_size = 8;
  sent.master_addr = "10.0.0.1";
  sent.master_port = 40000;
  sent.restart_count = 2;
  sent.max_restarts = 3;
  sent.run_id = "job7";
  sent.use_agent_store = true;
  sent.error_file = "/tmp/error.json";
  CHECK(acc::read_worker_env(acc::to_environment(sent)) == sent);
}

TEST_CASE("worker_env: a program without a launcher is a job of one", "[base]") {
  CHECK(acc::read_worker_env({}) == WorkerEnv{});
}

TEST_CASE("worker_env: booleans are written as Python compares them", "[base]") {
  WorkerEnv worker;
  worker.use_agent_store = true;
  CHECK(acc::to_environment(worker).find("TORCHELASTIC_USE_AGENT_STORE") == "True");
  CHECK_FALSE(acc::read_worker_env(Environment{{"TORCHELASTIC_USE_AGENT_STORE", "False"}}).use_agent_store);
}

TEST_CASE("worker_env: a malformed or incomplete variable is an error that names it", "[base]") {
  CHECK(error_of([] { acc::read_worker_env(Environment{{"RANK", "x"}, {"WORLD_SIZE", "2"}}); }) ==
        "RANK: must be a whole number of at least 0, not 'x' (the launcher sets it; start the program with "
        "`acc launch`)");
  CHECK(error_of([] {
          acc::read_worker_env(Environment{{"RANK", "0"}});
        }).starts_with("RANK: is set alone: RANK and WORLD_SIZE belong together"));
  CHECK(error_of([] {
          acc::read_worker_env(Environment{{"RANK", "2"}, {"WORLD_SIZE", "2"}});
        }).starts_with("RANK: 2 is not below WORLD_SIZE=2"));
  CHECK(error_of([] {
          acc::read_worker_env(Environment{{"MASTER_PORT", "70000"}});
        }).starts_with("MASTER_PORT: "));
}

TEST_CASE("worker_env: a program that srun started beside others has Slurm's rank", "[base]") {
  const WorkerEnv worker = acc::read_worker_env(acc::test::engine_environment("slurm_srun_n3_gpu.env", 2));
  CHECK(worker.rank == 2);
  CHECK(worker.world_size == 3);
  CHECK(worker.local_rank == 0);
  CHECK(worker.local_world_size == 1);
  CHECK(worker.group_rank == 2);
  CHECK(worker.group_world_size == 3);
  CHECK(worker.master_addr == "node1");
  CHECK(worker.master_port >= 20000);
  CHECK(worker.run_id == "3.0.0");
  CHECK_FALSE(worker.use_agent_store);
}

TEST_CASE("worker_env: a program that mpirun started beside others has MPI's rank", "[base]") {
  Environment task = acc::test::engine_environment("openmpi_4.1.4.env", 1);
  WorkerEnv worker = acc::read_worker_env(task);
  CHECK(worker.rank == 1);
  CHECK(worker.local_rank == 1);
  CHECK(worker.local_world_size == 2);
  CHECK(worker.master_addr == "127.0.0.1");
  task.overlay({{"MASTER_ADDR", "node0"}, {"MASTER_PORT", "4711"}, {"CUDA_VISIBLE_DEVICES", "1"}});
  worker = acc::read_worker_env(task);
  CHECK(worker.master_addr == "node0");
  CHECK(worker.master_port == 4711);
  CHECK(worker.local_rank == 0);
}

TEST_CASE("worker_env: a program does not train alone beside others if its rank is not known", "[base]") {
  const Environment pod = {{"KUBERNETES_SERVICE_HOST", "10.0.0.1"}, {"JOB_COMPLETION_INDEX", "1"}};
  const std::string error = error_of([&] { acc::read_worker_env(pod); });
  CHECK(error.starts_with("JOB_COMPLETION_INDEX=1 found, "));
  CHECK(error.ends_with(" (start the program with `acc launch`; to train alone set ACC_ENGINE=none)"));
  Environment task = acc::test::engine_environment("openmpi_4.1.4.env", 0);
  task.set("OMPI_COMM_WORLD_LOCAL_SIZE", "1");
  CHECK(error_of([&] { acc::read_worker_env(task); }) ==
        "MASTER_ADDR: Open MPI started 2 processes on several machines and does not tell the address of rank "
        "0 (set it "
        "to the host of rank 0, or start the program with `acc launch`; to train alone set ACC_ENGINE=none)");
  task.set("ACC_ENGINE", "none");
  CHECK(acc::read_worker_env(task) == WorkerEnv{});
}

TEST_CASE("worker_env: what a launcher set counts, and a batch script is alone", "[base]") {
  Environment worker = acc::test::engine_environment("slurm_srun_n2.env", 1);
  worker.overlay({{"RANK", "5"}, {"WORLD_SIZE", "8"}});
  CHECK(acc::read_worker_env(worker).rank == 5);
  CHECK(acc::read_worker_env(acc::test::engine_environment("slurm_batch_script.env")) == WorkerEnv{});
}

}  // namespace worker_env_test
