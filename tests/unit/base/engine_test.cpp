// SPDX-License-Identifier: Apache-2.0
#include "acc/base/engine.hpp"

#include "support/catch.hpp"
#include "support/engine_environments.hpp"
#include "support/errors.hpp"

namespace engine_test {

using acc::Engine;
using acc::EngineFamily;
using acc::EngineValue;
using acc::Environment;
using acc::find_engine;
using acc::test::engine_environment;
using acc::test::engine_inside_slurm;
using acc::test::error_of;
using Number = EngineValue<int>;
using Text = EngineValue<std::string>;

namespace {

Environment with(Environment environment, const Environment& over) {
  environment.overlay(over);
  return environment;
}

// A task of `srun --ntasks-per-node=... ` on node[1-3], as Slurm 22.05 describes it.
Environment step_task(int rank, int local_rank, const std::string& node, const std::string& tasks, int size) {
  return {{"SLURM_JOB_ID", "9"},
          {"SLURM_STEP_ID", "0"},
          {"SLURM_PROCID", std::to_string(rank)},
          {"SLURM_LOCALID", std::to_string(local_rank)},
          {"SLURMD_NODENAME", node},
          {"SLURM_STEP_NODELIST", "node[1-3]"},
          {"SLURM_STEP_NUM_NODES", "3"},
          {"SLURM_STEP_NUM_TASKS", std::to_string(size)},
          {"SLURM_STEP_TASKS_PER_NODE", tasks}};
}

}  // namespace

TEST_CASE("engine: without one there is nothing to ask", "[base]") {
  CHECK(find_engine({}) == Engine{});
  CHECK_FALSE(find_engine({{"PATH", "/bin"}, {"RANK", "1"}, {"WORLD_SIZE", "2"}, {"MASTER_ADDR", "a"}}));
  CHECK(acc::engine_name({}).empty());
}

TEST_CASE("engine: a step of Slurm with a task on each node", "[base]") {
  const Engine engine = find_engine(engine_environment("slurm_srun_n2.env", 1));
  CHECK(engine.name == "Slurm");
  CHECK(engine.job == "2");
  CHECK(engine.node == "node2");
  CHECK(engine.rank == Number{1, "SLURMD_NODENAME=node2, 2nd of SLURM_STEP_NODELIST=node[1-2]"});
  CHECK(engine.size == Number{2, "SLURM_STEP_NUM_NODES"});
  CHECK(engine.local_rank == Number{0, "SLURM_LOCALID"});
  CHECK(engine.local_size->value == 1);
  CHECK(engine.master_addr == Text{"node1", "first of SLURM_STEP_NODELIST=node[1-2]"});
  CHECK(engine.run_id == Text{"2.0.0", "SLURM_JOB_ID and SLURM_STEP_ID"});
  CHECK_FALSE(engine.several_per_node);
  CHECK_FALSE(engine.problem);
  CHECK(find_engine(engine_environment("slurm_srun_n2.env", 0)).rank->value == 0);
}

TEST_CASE("engine: Slurm's nodes agree on address, port and run, which a requeue changes", "[base]") {
  const Environment first = engine_environment("slurm_srun_n3_gpu.env", 0);
  const Engine zero = find_engine(first);
  CHECK(zero.gpus == Number{2, "SLURM_GPUS_ON_NODE"});
  CHECK(zero.master_port->value >= 20000);
  CHECK(zero.master_port->value < 30000);
  for (const int task : {1, 2}) {
    const Engine other = find_engine(engine_environment("slurm_srun_n3_gpu.env", task));
    CHECK(other.rank->value == task);
    CHECK(other.master_addr == zero.master_addr);
    CHECK(other.master_port == zero.master_port);
    CHECK(other.run_id == zero.run_id);
  }
  CHECK(find_engine(with(first, {{"SLURM_RESTART_COUNT", "1"}})).run_id ==
        Text{"3.0.1", "SLURM_JOB_ID and SLURM_STEP_ID and SLURM_RESTART_COUNT"});
}

TEST_CASE("engine: rank 0 is on the first host of Slurm's list, in whatever order tasks were distributed",
          "[base]") {
  const Environment third = step_task(0, 0, "node3", "1(x3)", 3);
  const Engine engine =
      find_engine(with(third, {{"SLURM_NODEID", "0"}, {"SLURM_DISTRIBUTION", "arbitrary"}}));
  CHECK(engine.rank->value == 2);
  CHECK(engine.master_addr->value == "node1");
}

TEST_CASE("engine: several tasks of Slurm on a node", "[base]") {
  const Engine engine = find_engine(step_task(3, 0, "node2", "3,1(x2)", 5));
  CHECK(engine.several_per_node);
  CHECK(engine.rank == Number{3, "SLURM_PROCID"});
  CHECK(engine.size == Number{5, "SLURM_STEP_NUM_TASKS"});
  CHECK(engine.local_size == Number{1, "SLURM_STEP_TASKS_PER_NODE=3,1(x2)"});
  CHECK(engine.node_rank->value == 1);
  CHECK(engine.num_nodes->value == 3);
  CHECK(find_engine(step_task(2, 2, "node1", "3,1(x2)", 5)).local_size->value == 3);
}

TEST_CASE("engine: tasks that were distributed by hand are counted along Slurm's list of hosts", "[base]") {
  // Seen of `srun -n3 --distribution=arbitrary` with a host file node2 node2 node1: the list is sorted.
  const auto task = [](int rank, int local_rank, const std::string& node) {
    return find_engine(
        with(step_task(rank, local_rank, node, "1,2,1", 4), {{"SLURM_DISTRIBUTION", "arbitrary"}}));
  };
  CHECK(task(0, 0, "node2").rank ==
        Number{1, "SLURM_LOCALID=0 on node 1 of SLURM_STEP_TASKS_PER_NODE=1,2,1"});
  CHECK(task(1, 1, "node2").rank->value == 2);
  CHECK(task(2, 0, "node1").rank->value == 0);
  CHECK(task(3, 0, "node3").rank->value == 3);
  CHECK(task(0, 0, "node2").master_addr->value == "node1");
  CHECK(task(0, 2, "node2").problem);
}

TEST_CASE("engine: the 1st, 2nd, 3rd, 4th, 11th and 21st node", "[base]") {
  Environment task = step_task(0, 0, "node1", "1(x30)", 30);
  task.set("SLURM_STEP_NUM_NODES", "30");
  task.set("SLURM_STEP_NODELIST", "node[1-30]");
  for (const std::string place : {"1st", "2nd", "3rd", "4th", "11th", "12th", "13th", "21st", "22nd"}) {
    task.set("SLURMD_NODENAME", "node" + place.substr(0, place.size() - 2));
    CHECK(find_engine(task).rank->origin.find(" " + place + " of ") != std::string::npos);
  }
}

TEST_CASE("engine: of a step that does not tell enough the place is not guessed", "[base]") {
  Environment task = engine_environment("slurm_srun_n2.env", 1);
  task.erase("SLURM_STEP_NUM_NODES");
  const Engine engine = find_engine(task);
  REQUIRE(engine.problem);
  CHECK(
      to_string(*engine.problem) ==
      "SLURM_STEP_ID=0 found, but not SLURM_STEP_NUM_TASKS, SLURM_STEP_NUM_NODES, SLURM_LOCALID and "
      "SLURM_NODEID: the place of this process in the job of Slurm is not known (give --nnodes, --node-rank "
      "and --master-addr, or --engine none)");
  task = engine_environment("slurm_srun_n2.env", 1);
  task.set("SLURMD_NODENAME", "elsewhere");
  CHECK(find_engine(task).rank == Number{1, "SLURM_NODEID"});
}

TEST_CASE("engine: a batch script and a shell of salloc run on one node alone", "[base]") {
  const Environment script = engine_environment("slurm_batch_script.env");
  CHECK(to_string(*find_engine(script).problem) ==
        "this is job 4's batch script on node1 (2 nodes, no step). Only this node would run. Write: srun "
        "--ntasks-per-node=1 acc launch … (or acc launch --srun …; for this node alone --engine none)");
  const Environment shell = {{"SLURM_JOB_ID", "4"}, {"SLURM_JOB_NUM_NODES", "2"}};
  CHECK(find_engine(shell).problem->what.starts_with("this is a shell in the allocation of job 4 (2 nodes"));
  const Environment interactive =
      with(engine_environment("slurm_srun_n2.env", 0), {{"SLURM_STEP_ID", "4294967290"}});
  CHECK(find_engine(interactive).problem);
  const Engine alone = find_engine(with(script, {{"SLURM_JOB_NUM_NODES", "1"}}));
  CHECK_FALSE(alone.problem);
  CHECK_FALSE(alone.has_others());
  CHECK(alone.allocated_host.empty());
  // salloc opens its shell where it was called.
  const Engine of_one =
      find_engine({{"SLURM_JOB_ID", "4"}, {"SLURM_JOB_NUM_NODES", "1"}, {"SLURM_JOB_NODELIST", "node[1]"}});
  CHECK_FALSE(of_one.problem);
  CHECK(of_one.allocated_host == "node1");
}

TEST_CASE("engine: Open MPI", "[base]") {
  const Engine engine = find_engine(engine_environment("openmpi_4.1.4.env", 1));
  CHECK(engine.name == "Open MPI");
  CHECK(engine.family == EngineFamily::mpi);
  CHECK(engine.rank == Number{1, "OMPI_COMM_WORLD_RANK"});
  CHECK(engine.size == Number{2, "OMPI_COMM_WORLD_SIZE"});
  CHECK(engine.local_rank->value == 1);
  CHECK(engine.local_size->value == 2);
  CHECK(engine.several_per_node);
  CHECK(engine.num_nodes->value == 1);
  CHECK(engine.master_addr == Text{"127.0.0.1", "OMPI_COMM_WORLD_LOCAL_SIZE=2: all on this machine"});
  CHECK(engine.run_id->value == "609681409");
}

TEST_CASE("engine: MPICH's Hydra, and MVAPICH", "[base]") {
  const Engine engine = find_engine(engine_environment("mpich_4.0.2_hydra.env", 1));
  CHECK(engine.name == "MPI (Hydra)");
  CHECK(engine.rank->value == 1);
  CHECK(engine.size->value == 2);
  CHECK(engine.local_rank->value == 1);
  CHECK(engine.several_per_node);
  const Engine mvapich = find_engine({{"MV2_COMM_WORLD_RANK", "3"},
                                      {"MV2_COMM_WORLD_SIZE", "4"},
                                      {"MV2_COMM_WORLD_LOCAL_RANK", "0"},
                                      {"MV2_COMM_WORLD_LOCAL_SIZE", "1"}});
  CHECK(mvapich.rank->value == 3);
  CHECK(mvapich.node_rank->value == 3);
  CHECK_FALSE(mvapich.several_per_node);
  CHECK_FALSE(mvapich.master_addr);
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

TEST_CASE("engine: PMI that Slurm itself serves is Slurm's", "[base]") {
  const Environment task = with(engine_environment("slurm_srun_n2.env", 1),
                                {{"PMI_RANK", "1"}, {"PMI_SIZE", "2"}, {"PMI_FD", "9"}});
  CHECK(find_engine(task).name == "Slurm");
}

TEST_CASE("engine: another PMI does not tell which processes share a node", "[base]") {
  const Environment task = {{"PMI_RANK", "1"}, {"PMI_SIZE", "2"}};
  CHECK(find_engine(task).problem);
  CHECK_FALSE(find_engine(with(task, {{"PMI_RANK", "0"}, {"PMI_SIZE", "1"}})).problem);
}

TEST_CASE("engine: PMIx alone does not tell the number of processes", "[base]") {
  const Environment task = {
      {"PMIX_RANK", "1"}, {"PMIX_NAMESPACE", "prterun-node0-17@1"}, {"SLURM_JOB_ID", "7"}};
  CHECK(find_engine(task).name == "PRRTE");
  CHECK(find_engine(task).problem->what.starts_with("PMIX_RANK=1 found, but not the number of processes"));
  const Environment of_slurm = with(engine_environment("slurm_srun_n2.env", 1),
                                    {{"PMIX_RANK", "1"}, {"PMIX_NAMESPACE", "slurm.pmix.2.0"}});
  CHECK(find_engine(of_slurm).name == "Slurm");
}

TEST_CASE("engine: Flux", "[base]") {
  const Engine engine = find_engine({{"FLUX_JOB_ID", "ƒABC"},
                                     {"FLUX_JOB_SIZE", "4"},
                                     {"FLUX_JOB_NNODES", "2"},
                                     {"FLUX_TASK_RANK", "3"},
                                     {"FLUX_TASK_LOCAL_ID", "1"}});
  CHECK(engine.name == "Flux");
  CHECK(engine.rank->value == 3);
  CHECK(engine.several_per_node);
  CHECK(engine.run_id->value == "ƒABC");
}

TEST_CASE("engine: a LeaderWorkerSet tells everything", "[base]") {
  const Engine engine = find_engine({{"KUBERNETES_SERVICE_HOST", "10.0.0.1"},
                                     {"LWS_LEADER_ADDRESS", "set-0.set.default"},
                                     {"LWS_GROUP_SIZE", "4"},
                                     {"LWS_WORKER_INDEX", "2"}});
  CHECK(engine.name == "LeaderWorkerSet");
  CHECK(engine.rank == Number{2, "LWS_WORKER_INDEX"});
  CHECK(engine.size == Number{4, "LWS_GROUP_SIZE"});
  CHECK(engine.master_addr == Text{"set-0.set.default", "LWS_LEADER_ADDRESS"});
}

TEST_CASE("engine: a pod of an Indexed Job knows its rank alone", "[base]") {
  const Engine engine = find_engine({{"KUBERNETES_SERVICE_HOST", "10.0.0.1"}, {"JOB_COMPLETION_INDEX", "1"}});
  CHECK(engine.rank == Number{1, "JOB_COMPLETION_INDEX"});
  CHECK_FALSE(engine.size);
  CHECK(to_string(*engine.problem) ==
        "JOB_COMPLETION_INDEX=1 found, the number of pods is not in the environment (give --nnodes)");
  CHECK(acc::first_pod("train-1.train.default.svc.cluster.local") ==
        "train-0.train.default.svc.cluster.local");
  CHECK(acc::first_pod("set-workers-0-3.set.default.svc") == "set-workers-0-0.set.default.svc");
  CHECK(acc::first_pod("train-1").empty());
  CHECK(acc::first_pod("host.domain-1").empty());
}

TEST_CASE("engine: a pod that knows a rank among several, but not torchrun's number of pods", "[base]") {
  const Environment pod = {{"KUBERNETES_SERVICE_HOST", "10.0.0.1"},
                           {"MASTER_ADDR", "job-master-0"},
                           {"WORLD_SIZE", "2"},
                           {"RANK", "1"}};
  CHECK(to_string(*find_engine(pod).problem) ==
        "RANK=1 and WORLD_SIZE=2 found, the number of pods is not in the environment (give --nnodes and "
        "--node-rank)");
  CHECK_FALSE(find_engine(with(pod, {{"PET_NNODES", "2"}})).problem);
  CHECK_FALSE(find_engine({{"KUBERNETES_SERVICE_HOST", "10.0.0.1"}}).problem);
}

TEST_CASE("engine: a script of LSF runs on its first host alone", "[base]") {
  CHECK(find_engine({{"LSB_JOBID", "17"}, {"LSB_MCPU_HOSTS", "a 4 b 4 "}}).problem);
  CHECK_FALSE(find_engine({{"LSB_JOBID", "17"}, {"LSB_MCPU_HOSTS", "a 4 "}}).problem);
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
  CHECK(error_of([] {
          find_engine({{"OMPI_COMM_WORLD_RANK", "one"}});
        }) ==
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

TEST_CASE("engine: a restart of a JobSet is another run, where the manifest tells it", "[base]") {
  const Environment pod = {{"KUBERNETES_SERVICE_HOST", "10.0.0.1"}, {"JOB_COMPLETION_INDEX", "1"}};
  CHECK_FALSE(find_engine(pod).run_id);
  const Engine second = find_engine(with(pod, {{"JOBSET_NAME", "train"}, {"JOBSET_RESTART_ATTEMPT", "1"}}));
  CHECK(second.run_id == Text{"train.1", "JOBSET_NAME and JOBSET_RESTART_ATTEMPT"});
  CHECK_FALSE(second.master_port);
  CHECK(find_engine(with(pod, {{"JOBSET_RESTART_ATTEMPT", "0"}})).run_id ==
        Text{"jobset.0", "JOBSET_RESTART_ATTEMPT"});
  CHECK(error_of([&] {
          find_engine(with(pod, {{"JOBSET_RESTART_ATTEMPT", "x"}}));
        }) ==
        "JOBSET_RESTART_ATTEMPT: must be a whole number of at least 0, not 'x' (the engine sets it; --engine "
        "none "
        "ignores it)");
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
