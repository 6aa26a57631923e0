// SPDX-License-Identifier: Apache-2.0
#include "acc/base/engine.hpp"
#include "support/catch.hpp"
#include "support/engine_environments.hpp"

namespace engine_slurm_test {

using acc::Engine;
using acc::EngineValue;
using acc::Environment;
using acc::find_engine;
using acc::test::engine_environment;
using acc::test::with;
using Number = EngineValue<int>;
using Text = EngineValue<std::string>;

namespace {

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

TEST_CASE("engine_slurm: a step of Slurm with a task on each node", "[base]") {
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

TEST_CASE("engine_slurm: Slurm's nodes agree on address, port and run, which a requeue changes", "[base]") {
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

TEST_CASE(
    "engine_slurm: rank 0 is on the first host of Slurm's list, in whatever order tasks were distributed",
    "[base]") {
  const Environment third = step_task(0, 0, "node3", "1(x3)", 3);
  const Engine engine =
      find_engine(with(third, {{"SLURM_NODEID", "0"}, {"SLURM_DISTRIBUTION", "arbitrary"}}));
  CHECK(engine.rank->value == 2);
  CHECK(engine.master_addr->value == "node1");
}

TEST_CASE("engine_slurm: several tasks of Slurm on a node", "[base]") {
  const Engine engine = find_engine(step_task(3, 0, "node2", "3,1(x2)", 5));
  CHECK(engine.several_per_node);
  CHECK(engine.rank == Number{3, "SLURM_PROCID"});
  CHECK(engine.size == Number{5, "SLURM_STEP_NUM_TASKS"});
  CHECK(engine.local_size == Number{1, "SLURM_STEP_TASKS_PER_NODE=3,1(x2)"});
  CHECK(engine.node_rank->value == 1);
  CHECK(engine.num_nodes->value == 3);
  CHECK(find_engine(step_task(2, 2, "node1", "3,1(x2)", 5)).local_size->value == 3);
}

TEST_CASE("engine_slurm: tasks that were distributed by hand are counted along Slurm's list of hosts",
          "[base]") {
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

TEST_CASE("engine_slurm: the 1st, 2nd, 3rd, 4th, 11th and 21st node", "[base]") {
  Environment task = step_task(0, 0, "node1", "1(x30)", 30);
  task.set("SLURM_STEP_NUM_NODES", "30");
  task.set("SLURM_STEP_NODELIST", "node[1-30]");
  for (const std::string ordinal : {"1st", "2nd", "3rd", "4th", "11th", "12th", "13th", "21st", "22nd"}) {
    task.set("SLURMD_NODENAME", "node" + ordinal.substr(0, ordinal.size() - 2));
    CHECK(find_engine(task).rank->origin.find(" " + ordinal + " of ") != std::string::npos);
  }
}

TEST_CASE("engine_slurm: of a step that does not tell enough the rank is not guessed", "[base]") {
  Environment task = engine_environment("slurm_srun_n2.env", 1);
  task.erase("SLURM_STEP_NUM_NODES");
  const Engine engine = find_engine(task);
  REQUIRE(engine.problem);
  CHECK(to_string(*engine.problem) ==
        "SLURM_STEP_ID=0 found, but not SLURM_STEP_NUM_TASKS, SLURM_STEP_NUM_NODES, SLURM_LOCALID and "
        "SLURM_NODEID: the rank of this process in the job of Slurm is not known (give --nnodes, --node-rank "
        "and --master-addr, or --engine none)");
  task = engine_environment("slurm_srun_n2.env", 1);
  task.set("SLURMD_NODENAME", "elsewhere");
  CHECK(find_engine(task).rank == Number{1, "SLURM_NODEID"});
  task.set("SLURM_LOCALID", "1");
  CHECK(find_engine(task).problem->what.starts_with(
      "SLURM_LOCALID=1 found, but not more tasks than nodes in the step: the rank"));
}

TEST_CASE("engine_slurm: a batch script and a shell of salloc run on one node alone", "[base]") {
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

TEST_CASE("engine_slurm: a script of a heterogeneous job has the nodes of all components", "[base]") {
  const Environment script =
      with(engine_environment("slurm_batch_script.env"), {{"SLURM_JOB_NUM_NODES", "1"},
                                                          {"SLURM_HET_SIZE", "2"},
                                                          {"SLURM_JOB_NUM_NODES_HET_GROUP_0", "1"},
                                                          {"SLURM_JOB_NUM_NODES_HET_GROUP_1", "2"}});
  CHECK(find_engine(script).problem->what ==
        "this is job 4's batch script on node1 (3 nodes, no step). Only this node would run. Write: srun "
        "--het-group=0-1 --ntasks-per-node=1 acc launch …");
  CHECK(acc::slurm_groups(script) == "--het-group=0-1");
  CHECK(acc::slurm_groups(engine_environment("slurm_batch_script.env")).empty());
  const Environment wrong = with(script, {{"SLURM_HET_SIZE", "129"}});
  CHECK_THROWS_WITH(find_engine(wrong),
                    "SLURM_HET_SIZE: must be at most 128, not 129 (the engine sets it; "
                    "--engine none ignores it)");
}

}  // namespace engine_slurm_test
