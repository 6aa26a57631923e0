// SPDX-License-Identifier: Apache-2.0
#include "acc/plan/engine_values.hpp"

#include <algorithm>

#include "acc/plan/resolve.hpp"
#include "acc/plan/worker_environment.hpp"
#include "support/catch.hpp"
#include "support/engine_environments.hpp"
#include "support/errors.hpp"
#include "support/inputs.hpp"

namespace engine_values_test {

using acc::Environment;
using acc::launcher::Dialect;
using acc::launcher::expected_round;
using acc::launcher::LaunchInputs;
using acc::launcher::LaunchPlan;
using acc::launcher::resolve;
using acc::launcher::Setting;
using acc::launcher::Value;
using acc::test::engine_environment;
using acc::test::error_of;
using acc::test::file;
using Words = std::vector<std::string>;
namespace key = acc::launcher::key;

namespace {

const Environment kSecondOfTwo = engine_environment("slurm_srun_n2.env", 1);
const Environment kOpenMpi = engine_environment("openmpi_4.1.4.env", 1);

LaunchInputs started_by(const Environment& engine, const Words& words, Dialect dialect = Dialect::launch,
                        int gpus = 0) {
  LaunchInputs inputs = acc::test::inputs(words, dialect, gpus);
  inputs.environment.overlay(engine);
  return inputs;
}

LaunchPlan plan_of(const Environment& engine, const Words& words, Dialect dialect = Dialect::launch,
                   int gpus = 0) {
  return resolve(started_by(engine, words, dialect, gpus));
}

std::string refusal(const Environment& engine, const Words& words, Dialect dialect = Dialect::launch) {
  return error_of([&] { plan_of(engine, words, dialect); });
}

bool has_note(const LaunchPlan& plan, std::string_view text) {
  return std::ranges::any_of(plan.notes,
                             [&](const std::string& note) { return note.find(text) != std::string::npos; });
}

Environment worker(const LaunchPlan& plan) {
  return worker_environment(plan, 0, {.number = 0, .round = expected_round(plan), .folder = {}});
}

Environment four_tasks(int rank) {
  Environment task = kSecondOfTwo;
  task.overlay({{"SLURM_PROCID", std::to_string(rank)},
                {"SLURM_LOCALID", std::to_string(rank % 2)},
                {"SLURM_STEP_NUM_TASKS", "4"},
                {"SLURM_STEP_TASKS_PER_NODE", "2(x2)"}});
  return task;
}

Environment without(Environment environment, const std::string& name) {
  environment.erase(name);
  return environment;
}

const Environment kPod = {{"KUBERNETES_SERVICE_HOST", "10.0.0.1"}, {"JOB_COMPLETION_INDEX", "1"}};

}  // namespace

TEST_CASE("engine_values: a task per node makes one job of nodes, with a worker per device", "[plan]") {
  const LaunchPlan plan = plan_of(kSecondOfTwo, {"train.py"}, Dialect::launch, 4);
  CHECK(plan.num_machines == 2);
  CHECK(plan.machine_rank == 1);
  CHECK(plan.nproc_per_node == 4);
  CHECK(plan.rendezvous.endpoint_host == "node1");
  CHECK(plan.rendezvous.endpoint_port == plan.master_port);
  CHECK(plan.master_port >= 20000);
  CHECK(plan.run_id == "2.0.0");
  CHECK_FALSE(plan.task);
  CHECK(plan.settings.setting(key::num_machines) == Setting{2, "SLURM_STEP_NUM_NODES"});
  CHECK(plan.settings.setting(key::machine_rank) ==
        Setting{1, "SLURMD_NODENAME=node2, 2nd of SLURM_STEP_NODELIST=node[1-2]"});
  CHECK(plan.settings.setting(key::main_process_ip) ==
        Setting{"node1", "first of SLURM_STEP_NODELIST=node[1-2]"});
  CHECK(plan.settings.setting(key::main_process_port).origin ==
        "derived from SLURM_JOB_ID and SLURM_STEP_ID");
  CHECK(plan.engine == "Slurm (job 2): 2 nodes; this is node 1, node2, with 4 workers; they meet at node1:" +
                           std::to_string(plan.master_port));
  CHECK(worker(plan).get("RANK") == "4");
  CHECK(worker(plan).get("WORLD_SIZE") == "8");
  CHECK(plan_of(kSecondOfTwo, {"train.py"}).nproc_per_node == 1);
  CHECK(plan_of(kSecondOfTwo, {"--nproc-per-node", "3", "train.py"}).nproc_per_node == 3);
  CHECK(plan_of(kSecondOfTwo, {"--num_processes", "6", "train.py"}).nproc_per_node == 3);
}

TEST_CASE("engine_values: several tasks per node are one worker each", "[plan]") {
  const LaunchPlan plan = plan_of(four_tasks(3), {"train.py"}, Dialect::launch, 2);
  CHECK(plan.nproc_per_node == 1);
  CHECK(plan.rendezvous.max_nodes == 4);
  CHECK(plan.rendezvous.node_rank == 3);
  CHECK(plan.settings.setting(key::num_machines) == Setting{2, "SLURM_STEP_NUM_NODES"});
  CHECK(plan.settings.setting(key::num_processes).value == 4);
  CHECK(plan.engine.starts_with(
      "Slurm (job 2): 4 tasks, one worker each; this is rank 3 (local rank 1, node2)"));
  const Environment variables = worker(plan);
  CHECK(variables.get("RANK") == "3");
  CHECK(variables.get("WORLD_SIZE") == "4");
  CHECK(variables.get("LOCAL_RANK") == "1");
  CHECK(variables.get("LOCAL_WORLD_SIZE") == "2");
  CHECK(variables.get("GROUP_RANK") == "1");
  CHECK(variables.get("GROUP_WORLD_SIZE") == "2");
  CHECK(variables.get("OMP_NUM_THREADS") == "8");
}

TEST_CASE("engine_values: tasks that the engine bound to cores of their own use all of these", "[plan]") {
  LaunchInputs inputs = started_by(four_tasks(3), {"train.py"});
  inputs.machine.allowed_cpus = 4;
  inputs.allowed_cores = [] { return 4; };
  CHECK(worker(resolve(inputs)).get("OMP_NUM_THREADS") == "4");
}

TEST_CASE("engine_values: a task that sees one device has LOCAL_RANK 0", "[plan]") {
  Environment task = four_tasks(3);
  task.set("CUDA_VISIBLE_DEVICES", "1");
  const LaunchPlan plan = plan_of(task, {"train.py"}, Dialect::launch, 2);
  CHECK(worker(plan).get("LOCAL_RANK") == "0");
  CHECK(worker(plan).get("CUDA_VISIBLE_DEVICES") == "1");
  CHECK(has_note(plan, "CUDA_VISIBLE_DEVICES=1: each task sees one device"));
  const LaunchPlan isolated = plan_of(four_tasks(3), {"--isolate-gpus", "train.py"}, Dialect::launch, 2);
  CHECK(worker(isolated).get("CUDA_VISIBLE_DEVICES") == "1");
}

TEST_CASE("engine_values: a task is bound as one of the workers of its node", "[plan]") {
  const auto bound = [](int rank, const Words& flags, int allowed_cpus) {
    Words words = {"--numa-binding", "exclusive"};
    words.insert(words.end(), flags.begin(), flags.end());
    words.emplace_back("train.py");
    LaunchInputs inputs = started_by(four_tasks(rank), words);
    inputs.machine.allowed_cpus = allowed_cpus;
    inputs.topology = [](const acc::Machine&) {
      return acc::Topology{
          .cpus = {{.id = 0, .core = 0}, {.id = 1, .core = 1}, {.id = 2, .core = 2}, {.id = 3, .core = 3}}};
    };
    const LaunchPlan plan = resolve(inputs);
    REQUIRE(plan.cpus_of_rank.size() == 1);
    return plan.cpus_of_rank.front().cpus;
  };
  CHECK(bound(2, {}, 32) == acc::CpuSet{0, 1});
  CHECK(bound(3, {}, 32) == acc::CpuSet{2, 3});
  // Slurm bound the task itself: it shares these with no other.
  CHECK(bound(3, {}, 4) == acc::CpuSet{0, 1, 2, 3});
}

TEST_CASE("engine_values: output of a task is directed by its rank on the node", "[plan]") {
  CHECK(plan_of(four_tasks(2), {"train.py"}).output.first_local_rank == 0);
  CHECK(plan_of(four_tasks(3), {"train.py"}).output.first_local_rank == 1);
  CHECK(plan_of(kSecondOfTwo, {"train.py"}).output.first_local_rank == 0);
}

TEST_CASE("engine_values: a shell of salloc on a login node is not the node", "[plan]") {
  Environment shell = {{"SLURM_JOB_ID", "4"}, {"SLURM_JOB_NUM_NODES", "1"}, {"SLURM_JOB_NODELIST", "node1"}};
  CHECK(refusal(shell, {"train.py"}) ==
        "this is a shell on node0 in the allocation of job 4, whose node is node1. acc would run here, not "
        "there. Write: "
        "srun --ntasks-per-node=1 acc launch … (or acc launch --srun …; to run here --engine none)");
  CHECK(refusal(shell, {"--engine", "none", "train.py"}) == "no error");
  // torchrun's rules ask no engine.
  CHECK(plan_of(shell, {"train.py"}, Dialect::torchrun).num_machines == 1);
  shell.set("SLURM_JOB_NODELIST", "node0");
  CHECK(refusal(shell, {"train.py"}) == "no error");
  // Another name for an own address.
  shell.set("SLURM_JOB_NODELIST", "train");
  CHECK(refusal(shell, {"train.py"}) == "no error");
}

TEST_CASE("engine_values: several tasks per node and a number of workers exclude each other", "[plan]") {
  CHECK(refusal(four_tasks(3), {"--nproc-per-node", "4", "train.py"}) ==
        "Slurm started 2 tasks on node2 and --nproc-per-node 4 was asked: that is 8 workers (use "
        "--ntasks-per-node=1, or drop --nproc-per-node)");
  CHECK(refusal(four_tasks(3), {"--num_processes", "8", "train.py"}) ==
        "Slurm started 4 tasks (SLURM_STEP_NUM_TASKS), each of which is a worker, and --num_processes says 8 "
        "(use "
        "--ntasks-per-node=1, or drop --num_processes)");
  CHECK(refusal(four_tasks(3), {"--nproc-per-node", "gpu", "train.py"})
            .starts_with("Slurm started 2 tasks on"));
  CHECK(plan_of(four_tasks(3), {"--nproc-per-node", "1", "train.py"}).rendezvous.max_nodes == 4);
  CHECK(plan_of(four_tasks(3), {"--num_processes", "4", "train.py"}).rendezvous.max_nodes == 4);
  CHECK(plan_of(four_tasks(3), {"--nnodes", "2", "train.py"}).rendezvous.max_nodes == 4);
}

TEST_CASE("engine_values: what is typed or exported takes precedence", "[plan]") {
  const LaunchPlan typed = plan_of(kSecondOfTwo, {"--nnodes", "2", "--master-addr", "other", "--master-port",
                                                  "1234", "--rdzv-id", "mine", "train.py"});
  CHECK(typed.rendezvous.endpoint_host == "other");
  CHECK(typed.master_port == 1234);
  CHECK(typed.run_id == "mine");
  CHECK(typed.machine_rank == 1);
  Environment exported = kSecondOfTwo;
  exported.overlay({{"PET_MASTER_ADDR", "pet"}, {"MASTER_ADDR", "last"}});
  CHECK(plan_of(exported, {"train.py"}).master_addr == "pet");
  const LaunchPlan range = plan_of(kSecondOfTwo, {"--nnodes", "1:4", "--rdzv-backend", "c10d", "train.py"});
  CHECK(range.rendezvous.min_nodes == 1);
  CHECK(range.rendezvous.max_nodes == 4);
  CHECK(range.rendezvous.endpoint_host == "node1");
}

TEST_CASE("engine_values: contradictions name both sides", "[plan]") {
  CHECK(refusal(kSecondOfTwo, {"--nnodes", "3", "train.py"}) ==
        "--nnodes (nnodes = 3) and SLURM_STEP_NUM_NODES (Slurm, 2) contradict each other (drop --nnodes; for "
        "jobs "
        "that do not know of each other --engine none)");
  CHECK(refusal(kSecondOfTwo, {"--num_machines", "1", "train.py"})
            .starts_with("--num_machines (num_machines = 1)"));
  CHECK(refusal(kSecondOfTwo, {"--machine_rank", "0", "train.py"})
            .starts_with("--machine_rank (machine_rank = 0) and SLURMD_NODENAME=node2, 2nd of"));
  Environment exported = kSecondOfTwo;
  exported.set("PET_NNODES", "4");
  CHECK(refusal(exported, {"train.py"}).starts_with("PET_NNODES (nnodes = 4) and SLURM_STEP_NUM_NODES"));
}

TEST_CASE("engine_values: a named config file takes precedence, the default one does not", "[plan]") {
  const Value values = {{"distributed_type", "MULTI_CPU"},
                        {"num_machines", 1},
                        {"num_processes", 4},
                        {"machine_rank", 0},
                        {"main_process_ip", "old"},
                        {"mixed_precision", "bf16"}};
  LaunchInputs inputs = started_by(kSecondOfTwo, {"train.py"});
  inputs.file = file(values);
  CHECK(error_of([&] { resolve(inputs); }).find(" (num_machines = 1) and SLURM_STEP_NUM_NODES (Slurm, 2)") !=
        std::string::npos);
  inputs.file_is_default = true;
  const LaunchPlan plan = resolve(inputs);
  CHECK(plan.num_machines == 2);
  CHECK(plan.machine_rank == 1);
  CHECK(plan.nproc_per_node == 1);
  CHECK(plan.master_addr == "node1");
  CHECK(plan.settings.setting(key::mixed_precision).value == "bf16");
  CHECK(has_note(plan,
                 "num_machines, machine_rank, num_processes, main_process_ip, distributed_type of the "
                 "default config file have no effect: Slurm decides"));
}

TEST_CASE("engine_values: the rank of a named config file, which all nodes share, is the engine's",
          "[plan]") {
  LaunchInputs inputs = started_by(kSecondOfTwo, {"train.py"});
  inputs.file =
      file({{"num_machines", 2}, {"num_processes", 4}, {"machine_rank", 0}, {"main_process_ip", "here"}});
  const LaunchPlan plan = resolve(inputs);
  CHECK(plan.machine_rank == 1);
  CHECK(plan.nproc_per_node == 2);
  CHECK(plan.master_addr == "here");
}

TEST_CASE("engine_values: --engine none, --standalone and one process have no effect on a job", "[plan]") {
  for (const Words& words : {Words{"--engine", "none", "train.py"}, Words{"--standalone", "train.py"}}) {
    const LaunchPlan plan = plan_of(kSecondOfTwo, words);
    CHECK(plan.num_machines == 1);
    CHECK(plan.engine.empty());
  }
  CHECK(plan_of(kSecondOfTwo, {"--engine", "none", "train.py"}).environment.get("ACC_ENGINE") == "none");
  Environment chosen = kSecondOfTwo;
  chosen.set("ACC_ENGINE", "none");
  CHECK(plan_of(chosen, {"train.py"}).num_machines == 1);
  CHECK(plan_of(chosen, {"--engine", "slurm", "train.py"}).num_machines == 2);
  CHECK(refusal(kSecondOfTwo, {"--engine", "mpi", "train.py"})
            .starts_with("no engine 'mpi' started this process"));
  Environment second = kSecondOfTwo;
  second.overlay({{"SLURM_STEP_NUM_TASKS", "1"},
                  {"SLURM_STEP_NUM_NODES", "1"},
                  {"SLURM_STEP_NODELIST", "node2"},
                  {"SLURM_PROCID", "0"}});
  const LaunchPlan alone = plan_of(second, {"train.py"}, Dialect::launch, 4);
  CHECK(alone.num_machines == 1);
  CHECK(alone.nproc_per_node == 4);
  CHECK(alone.master_addr == "127.0.0.1");
  // One of several single steps that a script starts itself.
  CHECK(plan_of(second, {"--nnodes", "2", "--node-rank", "1", "--master-addr", "node1", "train.py"})
            .num_machines == 2);
}

TEST_CASE("engine_values: under torchrun's rules copies that do not know of each other are told", "[plan]") {
  const LaunchPlan alone = plan_of(kSecondOfTwo, {"train.py"}, Dialect::torchrun);
  CHECK(alone.num_machines == 1);
  CHECK(has_note(alone,
                 "Slurm (job 2) started 2 copies of this command, and they do not know of each other: each "
                 "trains alone; `acc launch`, or --engine slurm, makes them one job"));
  for (const Words& words : {Words{"--standalone", "train.py"}, Words{"--engine", "none", "train.py"},
                             Words{"--nnodes", "2", "--node-rank", "1", "--master-addr", "node1", "train.py"},
                             Words{"--rdzv-backend", "c10d", "--rdzv-endpoint", "node1:29400", "train.py"}})
    CHECK_FALSE(has_note(plan_of(kSecondOfTwo, words, Dialect::torchrun), "copies"));
  const LaunchPlan asked = plan_of(kSecondOfTwo, {"--engine", "auto", "train.py"}, Dialect::torchrun);
  CHECK(asked.num_machines == 2);
  CHECK(asked.machine_rank == 1);
}

TEST_CASE("engine_values: processes of an mpirun on one machine meet there", "[plan]") {
  const LaunchPlan plan = plan_of(kOpenMpi, {"train.py"});
  CHECK(plan.rendezvous.max_nodes == 2);
  CHECK(plan.rendezvous.endpoint_host == "127.0.0.1");
  CHECK(worker(plan).get("LOCAL_RANK") == "1");
}

TEST_CASE("engine_values: an mpirun over machines needs the address of the first", "[plan]") {
  Environment task = kOpenMpi;
  task.overlay({{"OMPI_COMM_WORLD_LOCAL_RANK", "0"},
                {"OMPI_COMM_WORLD_LOCAL_SIZE", "1"},
                {"OMPI_MCA_orte_num_nodes", "2"}});
  CHECK(refusal(task, {"train.py"}) ==
        "Open MPI started 2 tasks on several machines and does not tell the address of the first (give "
        "--master-addr, "
        "the name of the host of rank 0, or set MASTER_ADDR)");
  task.overlay({{"MASTER_ADDR", "node1"}, {"MASTER_PORT", "4711"}});
  const LaunchPlan plan = plan_of(task, {"train.py"});
  CHECK(plan.settings.setting(key::main_process_ip) == Setting{"node1", "MASTER_ADDR"});
  CHECK(plan.settings.setting(key::main_process_port) == Setting{4711, "MASTER_PORT"});
  CHECK(plan.num_machines == 2);
  CHECK_FALSE(plan.task);
}

TEST_CASE("engine_values: processes of MPI ask rank 0 through their launcher", "[plan]") {
  LaunchInputs inputs =
      started_by({{"PMI_RANK", "1"}, {"PMI_SIZE", "2"}, {"MPI_LOCALRANKID", "0"}, {"MPI_LOCALNRANKS", "1"}},
                 {"train.py"});
  std::string offered;
  inputs.exchange = [&](const Environment&, int rank, const std::string& address) {
    CHECK(rank == 1);
    offered = address;
    return acc::FirstTask{"10.0.0.2", "kvs_17"};
  };
  const LaunchPlan plan = resolve(inputs);
  CHECK(offered == "10.0.0.1");
  CHECK(plan.settings.setting(key::main_process_ip) == Setting{"10.0.0.2", "rank 0 of MPI (Hydra)"});
  CHECK(plan.run_id == "kvs_17");
  CHECK(plan.master_port >= 20000);
  inputs.command_line =
      acc::launcher::parse_command_line({"--master-addr", "10.0.0.9", "train.py"}, Dialect::launch);
  inputs.exchange = [](const Environment&, int, const std::string&) -> std::optional<acc::FirstTask> {
    throw std::logic_error("asked");
  };
  CHECK(resolve(inputs).master_addr == "10.0.0.9");
}

TEST_CASE("engine_values: a task that is alone on its node is a worker as those that are not", "[plan]") {
  // mpirun -n 3 -ppn 2, or on three nodes.
  LaunchInputs inputs =
      started_by({{"PMI_RANK", "2"}, {"PMI_SIZE", "3"}, {"MPI_LOCALRANKID", "0"}, {"MPI_LOCALNRANKS", "1"}},
                 {"train.py"}, Dialect::launch, 4);
  const int nodes = GENERATE(2, 3);
  inputs.exchange = [&](const Environment&, int, const std::string&) {
    return acc::FirstTask{"10.0.0.2", "kvs_17", nodes};
  };
  const LaunchPlan plan = resolve(inputs);
  CHECK(plan.task.has_value() == (nodes == 2));
  CHECK(plan.nproc_per_node == (nodes == 2 ? 1 : 4));
  CHECK(plan.num_machines == 3);
  if (nodes == 3) return;
  CHECK(worker(plan).get("RANK") == "2");
  CHECK(worker(plan).get("WORLD_SIZE") == "3");
}

TEST_CASE("engine_values: so is one that is told where the tasks meet, and asks its launcher alone",
          "[plan]") {
  const bool by_flag = GENERATE(true, false);
  Environment task = {
      {"PMI_RANK", "2"}, {"PMI_SIZE", "3"}, {"MPI_LOCALRANKID", "0"}, {"MPI_LOCALNRANKS", "1"}};
  if (!by_flag) task.overlay({{"MASTER_ADDR", "10.0.0.2"}, {"MASTER_PORT", "4711"}});
  const std::vector<std::string> words =
      by_flag ? std::vector<std::string>{"--master-addr", "10.0.0.2", "train.py"}
              : std::vector<std::string>{"train.py"};
  LaunchInputs inputs = started_by(task, words, Dialect::launch, 4);
  const std::optional<int> nodes = GENERATE(std::optional(2), std::optional(3), std::optional<int>());
  inputs.count_task_nodes = [&](const Environment&) { return nodes; };
  const LaunchPlan plan = resolve(inputs);
  CHECK(plan.task.has_value() == (nodes == 2));
  CHECK(plan.nproc_per_node == (nodes == 2 ? 1 : 4));
  CHECK(plan.settings.setting(key::main_process_ip).value == "10.0.0.2");
}

TEST_CASE("engine_values: with one worker a task leaves its launcher to the worker", "[plan]") {
  const Environment task = {{"PMI_RANK", "2"},        {"PMI_SIZE", "3"},           {"MPI_LOCALRANKID", "0"},
                            {"MPI_LOCALNRANKS", "1"}, {"MASTER_ADDR", "10.0.0.2"}, {"MASTER_PORT", "4711"}};
  const auto& [words, gpus] =
      GENERATE(table<std::vector<std::string>, int>({{{"train.py"}, 0},
                                                     {{"train.py"}, 1},
                                                     {{"--cpu", "train.py"}, 4},
                                                     {{"--nproc_per_node", "1", "train.py"}, 4},
                                                     {{"--num_processes", "3", "train.py"}, 4}}));
  LaunchInputs inputs = started_by(task, words, Dialect::launch, gpus);
  inputs.count_task_nodes = [](const Environment&) -> std::optional<int> { throw std::logic_error("asked"); };
  CHECK(resolve(inputs).nproc_per_node == 1);
}

TEST_CASE("engine_values: where only one of several nodes would run, nothing is started", "[plan]") {
  const Environment script = engine_environment("slurm_batch_script.env");
  CHECK(refusal(script, {"train.py"}).starts_with("this is job 4's batch script on node1 "));
  CHECK(plan_of(script, {"--nnodes", "1", "train.py"}).num_machines == 1);
  CHECK(plan_of(script, {"--engine", "none", "train.py"}).num_machines == 1);
  Environment one_node = script;
  one_node.set("SLURM_JOB_NUM_NODES", "1");
  CHECK(plan_of(one_node, {"train.py"}, Dialect::launch, 4).nproc_per_node == 4);
}

TEST_CASE("engine_values: pods of an Indexed Job need their number, and find the first by its name",
          "[plan]") {
  CHECK(refusal(kPod, {"train.py"}).starts_with("JOB_COMPLETION_INDEX=1 found, "));
  LaunchInputs inputs = started_by(kPod, {"--nnodes", "2", "train.py"});
  inputs.full_host_name = [] { return "train-1.train.default.svc.cluster.local"; };
  const LaunchPlan plan = resolve(inputs);
  CHECK(plan.machine_rank == 1);
  CHECK(plan.settings.setting(key::machine_rank).origin == "JOB_COMPLETION_INDEX");
  CHECK(plan.rendezvous.endpoint_host == "train-0.train.default.svc.cluster.local");
  CHECK(plan.rendezvous.endpoint_port == 29500);
  inputs.full_host_name = [] { return "train-1"; };
  CHECK(
      error_of([&] { resolve(inputs); }) ==
      "the address of the first pod is not known: this one, train-1, has no domain (the Job needs a headless "
      "Service and its name as `subdomain`; or give --master-addr)");
}

TEST_CASE("engine_values: Kubeflow's variables are torchrun's, and suffice", "[plan]") {
  Environment pod = kPod;
  pod.overlay({{"PET_NNODES", "2"},
               {"PET_NPROC_PER_NODE", "3"},
               {"PET_NODE_RANK", "1"},
               {"PET_MASTER_ADDR", "job-node-0-0.job"},
               {"PET_MASTER_PORT", "29500"}});
  const LaunchPlan plan = plan_of(pod, {"train.py"});
  CHECK(plan.num_machines == 2);
  CHECK(plan.machine_rank == 1);
  CHECK(plan.nproc_per_node == 3);
  CHECK(plan.master_addr == "job-node-0-0.job");
  CHECK(plan.settings.setting(key::machine_rank).origin == "PET_NODE_RANK");
}

TEST_CASE("engine_values: of GPUs that Slurm does not hide only the job's are used", "[plan]") {
  Environment task = without(engine_environment("slurm_srun_n3_gpu.env", 1), "CUDA_VISIBLE_DEVICES");
  const LaunchPlan plan = plan_of(task, {"train.py"}, Dialect::launch, 8);
  CHECK(plan.nproc_per_node == 2);
  CHECK(
      has_note(plan, "SLURM_GPUS_ON_NODE=2 but CUDA_VISIBLE_DEVICES is not set (--gpu-bind=none?): using 2"));
  task.set("CUDA_VISIBLE_DEVICES", "3,4,5");
  CHECK(plan_of(task, {"train.py"}, Dialect::launch, 8).nproc_per_node == 3);
}

TEST_CASE("engine_values: a name of Slurm's that is no host name is told", "[plan]") {
  LaunchInputs inputs = started_by(kSecondOfTwo, {"train.py"});
  inputs.look_up = [](const std::string&) { return acc::HostLookup{.error = "Name or service not known"}; };
  const LaunchPlan plan = resolve(inputs);
  REQUIRE(plan.problems.size() == 1);
  CHECK(to_string(plan.problems.front()) ==
        "cannot resolve 'node1', the first of SLURM_STEP_NODELIST=node[1-2]: Name or service not known (give "
        "--master-addr)");
}

TEST_CASE("engine_values: launchers that start all machines themselves are not started on each", "[plan]") {
  LaunchInputs inputs =
      started_by(kSecondOfTwo, {"--cpu", "--num_processes", "4", "--mpirun_hostfile", "hosts", "train.py"});
  CHECK(error_of([&] { resolve(inputs); }) ==
        "Slurm started acc 2 times (SLURM_STEP_NUM_NODES), and each would start a launcher of MULTI_CPU of "
        "its own (start "
        "acc once with --engine none; for DeepSpeed --deepspeed_multinode_launcher standard)");
}

TEST_CASE("engine_values: --srun starts acc on every node of the allocation, once", "[plan]") {
  const Environment script = engine_environment("slurm_batch_script.env");
  CHECK(acc::launcher::srun_command(script, "/opt/acc", {"launch", "--srun", "train.py"}) ==
        Words{"srun", "--nodes=2", "--ntasks=2", "--ntasks-per-node=1", "--cpu-bind=none",
              "--kill-on-bad-exit=0", "/opt/acc", "launch", "--srun", "train.py"});
  CHECK(acc::launcher::srun_command(kSecondOfTwo, "/opt/acc", {"launch", "--srun", "train.py"}).empty());
  CHECK(error_of([] { acc::launcher::srun_command({}, "/opt/acc", {}); }) ==
        "--srun: there is no Slurm allocation here: SLURM_JOB_ID is not set (as in `sbatch -N2 job.sh` or "
        "`salloc "
        "-N2`)");
}

TEST_CASE("engine_values: nodes that RANK and WORLD_SIZE count are one job", "[plan]") {
  const Environment node = {
      {"WORLD_SIZE", "2"}, {"RANK", "1"}, {"MASTER_ADDR", "job-master-0"}, {"MASTER_PORT", "23456"}};
  const LaunchPlan plan = plan_of(node, {"--num_processes", "4", "train.py"});
  CHECK(plan.num_machines == 2);
  CHECK(plan.machine_rank == 1);
  CHECK(plan.nproc_per_node == 2);
  CHECK(plan.settings.setting(key::main_process_ip) == Setting{"job-master-0", "MASTER_ADDR"});
  CHECK(plan.settings.setting(key::main_process_port) == Setting{23456, "MASTER_PORT"});
  CHECK(plan.engine == "env://: 2 nodes; this is node 1, with 2 workers; they meet at job-master-0:23456");
  CHECK(worker(plan).get("RANK") == "2");
  CHECK(plan_of(node, {"--engine", "none", "train.py"}).num_machines == 1);
  // They count workers for whoever counts machines.
  const LaunchPlan typed =
      plan_of(node, {"--nnodes", "4", "--node-rank", "3", "--master-addr", "node1", "train.py"});
  CHECK(typed.num_machines == 4);
  CHECK(typed.machine_rank == 3);
  CHECK(plan_of(node, {"--num_machines", "2", "train.py"}).machine_rank == 1);
  CHECK(has_note(plan_of(node, {"train.py"}, Dialect::torchrun), "env:// started 2 copies of this command"));
}

TEST_CASE("engine_values: the main node of AWS Batch is found by its own address", "[plan]") {
  const Environment main = {
      {"AWS_BATCH_JOB_ID", "5f2a#0"}, {"AWS_BATCH_JOB_NUM_NODES", "2"}, {"AWS_BATCH_JOB_NODE_INDEX", "0"}};
  const LaunchPlan plan = plan_of(main, {"train.py"});
  CHECK(plan.num_machines == 2);
  CHECK(plan.settings.setting(key::main_process_ip) == Setting{"10.0.0.1", "the main node of AWS Batch"});
}

TEST_CASE("engine_values: nodes that cannot be made one job are noted", "[plan]") {
  const Environment node = {{"NNODES", "2"}, {"NODE_RANK", "1"}, {"MASTER_ADDR", "node1"}};
  constexpr std::string_view kNote =
      "NNODES=2 and NODE_RANK=1: if other nodes run this command, each trains alone; --nnodes, --node-rank "
      "and "
      "--master-addr make them one job";
  for (const Dialect dialect : {Dialect::launch, Dialect::torchrun}) {
    CHECK(has_note(plan_of(node, {"train.py"}, dialect), kNote));
    CHECK_FALSE(has_note(plan_of(node, {"--standalone", "train.py"}, dialect), "NNODES"));
    CHECK_FALSE(has_note(
        plan_of(node, {"--nnodes", "2", "--node-rank", "1", "--master-addr", "node1", "train.py"}, dialect),
        "NNODES"));
    Environment pod = node;
    pod.set("KUBERNETES_SERVICE_HOST", "10.0.0.1");
    CHECK(has_note(plan_of(pod, {"train.py"}, dialect), kNote));
  }
}

TEST_CASE("engine_values: under torchrun's rules a script on one of several nodes is told", "[plan]") {
  const Environment script = engine_environment("slurm_batch_script.env");
  CHECK(has_note(plan_of(script, {"train.py"}, Dialect::torchrun), "this is job 4's batch script on node1"));
  CHECK_FALSE(
      has_note(plan_of(script, {"--nnodes", "2", "--node-rank", "0", "--master-addr", "node1", "train.py"},
                       Dialect::torchrun),
               "batch script"));
}

TEST_CASE("engine_values: MASTER_ADDR and MASTER_PORT that are set come before the engine's", "[plan]") {
  Environment step = kSecondOfTwo;
  step.overlay({{"MASTER_ADDR", "node1"}, {"MASTER_PORT", "4711"}});
  const LaunchPlan plan = plan_of(step, {"train.py"});
  CHECK(plan.settings.setting(key::main_process_ip) == Setting{"node1", "MASTER_ADDR"});
  CHECK(plan.settings.setting(key::main_process_port) == Setting{4711, "MASTER_PORT"});
  // Other nodes do not find this one there.
  step.set("MASTER_ADDR", "localhost");
  CHECK(plan_of(step, {"train.py"}).settings.setting(key::main_process_ip).value == "node1");
  // A Service of Kubernetes of that name.
  step.set("MASTER_PORT", "tcp://10.0.0.1:80");
  CHECK(plan_of(step, {"train.py"})
            .settings.setting(key::main_process_port)
            .origin.starts_with("derived from"));
  step.set("MASTER_PORT", "x");
  CHECK(error_of([&] { plan_of(step, {"train.py"}); }) == "MASTER_PORT: 'x' is not a port");
  Environment here = kOpenMpi;
  here.overlay({{"MASTER_ADDR", "127.0.0.1"}, {"MASTER_PORT", "4711"}});
  CHECK(plan_of(here, {"train.py"}).master_port == 4711);
}

TEST_CASE("engine_values: a task whose node is not told is a group of its own", "[plan]") {
  const auto task = [](const std::string& rank) {
    Environment environment = kOpenMpi;
    environment.overlay({{"OMPI_COMM_WORLD_RANK", rank},
                         {"OMPI_COMM_WORLD_SIZE", "8"},
                         {"OMPI_COMM_WORLD_LOCAL_RANK", "3"},
                         {"OMPI_COMM_WORLD_LOCAL_SIZE", "4"},
                         {"OMPI_MCA_orte_num_nodes", "2"},
                         {"MASTER_ADDR", "node1"}});
    return worker(plan_of(environment, {"train.py"}));
  };
  CHECK(task("7").get("GROUP_RANK") == "7");
  CHECK(task("7").get("GROUP_WORLD_SIZE") == "8");
  CHECK(worker(plan_of(kOpenMpi, {"train.py"})).get("GROUP_RANK") == "0");
  CHECK(worker(plan_of(kOpenMpi, {"train.py"})).get("GROUP_WORLD_SIZE") == "1");
}

TEST_CASE("engine_values: --srun starts acc on all components of a heterogeneous job", "[plan]") {
  Environment script = engine_environment("slurm_batch_script.env");
  script.overlay({{"SLURM_HET_SIZE", "2"}, {"SLURM_JOB_NUM_NODES", "1"}});
  CHECK(acc::launcher::srun_command(script, "/opt/acc", {"launch", "--srun", "train.py"}) ==
        Words{"srun", "--het-group=0-1", "--ntasks-per-node=1", "--cpu-bind=none", "--kill-on-bad-exit=0",
              "/opt/acc", "launch", "--srun", "train.py"});
}

}  // namespace engine_values_test
