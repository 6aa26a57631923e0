// SPDX-License-Identifier: Apache-2.0
#include "acc/base/engine.hpp"
#include "support/catch.hpp"
#include "support/engine_environments.hpp"
#include "support/errors.hpp"

namespace engine_platforms_test {

using acc::Engine;
using acc::EngineValue;
using acc::Environment;
using acc::find_engine;
using acc::test::error_of;
using acc::test::with;
using Number = EngineValue<int>;
using Text = EngineValue<std::string>;

TEST_CASE("engine_platforms: a LeaderWorkerSet tells everything", "[base]") {
  const Engine engine = find_engine({{"KUBERNETES_SERVICE_HOST", "10.0.0.1"},
                                     {"LWS_LEADER_ADDRESS", "set-0.set.default"},
                                     {"LWS_GROUP_SIZE", "4"},
                                     {"LWS_WORKER_INDEX", "2"}});
  CHECK(engine.name == "LeaderWorkerSet");
  CHECK(engine.rank == Number{2, "LWS_WORKER_INDEX"});
  CHECK(engine.size == Number{4, "LWS_GROUP_SIZE"});
  CHECK(engine.master_addr == Text{"set-0.set.default", "LWS_LEADER_ADDRESS"});
}

TEST_CASE("engine_platforms: a pod of an Indexed Job knows its rank alone", "[base]") {
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

TEST_CASE("engine_platforms: RANK and WORLD_SIZE with MASTER_ADDR count nodes", "[base]") {
  const Environment node = {{"MASTER_ADDR", "job-master-0"}, {"WORLD_SIZE", "2"}, {"RANK", "1"}};
  const Engine engine = find_engine(node);
  CHECK(engine.name == "env://");
  CHECK(engine.rank == Number{1, "RANK"});
  CHECK(engine.node_rank->value == 1);
  CHECK(engine.num_nodes == Number{2, "WORLD_SIZE"});
  CHECK(engine.master_addr == Text{"job-master-0", "MASTER_ADDR"});
  CHECK_FALSE(engine.several_per_node);
  const Engine pod = find_engine(with(node, {{"KUBERNETES_SERVICE_HOST", "10.0.0.1"}}));
  CHECK(pod.name == "PyTorchJob");
  CHECK(pod.size == Number{2, "WORLD_SIZE"});
  // An Indexed Job whose manifest gives them, too.
  CHECK(find_engine(with(node, {{"KUBERNETES_SERVICE_HOST", "10.0.0.1"}, {"JOB_COMPLETION_INDEX", "1"}}))
            .name == "PyTorchJob");
  // A worker of some launcher; torchrun's variables; one process; a half; nothing.
  CHECK_FALSE(find_engine(with(node, {{"LOCAL_RANK", "1"}})));
  CHECK_FALSE(find_engine(with(node, {{"PET_NNODES", "2"}})));
  CHECK_FALSE(find_engine(with(node, {{"PET_RDZV_ENDPOINT", "a:29400"}})));
  CHECK_FALSE(find_engine(with(node, {{"WORLD_SIZE", "1"}, {"RANK", "0"}})));
  CHECK_FALSE(find_engine({{"WORLD_SIZE", "2"}, {"RANK", "1"}}));
  CHECK_FALSE(find_engine({{"MASTER_ADDR", ""}, {"WORLD_SIZE", ""}, {"RANK", ""}}));
  CHECK(find_engine(with(node, {{"RANK", "2"}})).problem);
  // Nothing is known of how its processes are ended.
  CHECK_FALSE(acc::engine_stop(node));
}

TEST_CASE("engine_platforms: Volcano lists the pods of a task", "[base]") {
  const Environment pod = {{"VC_TASK_INDEX", "1"},
                           {"VC_WORKER_NUM", "2"},
                           {"VC_WORKER_HOSTS", "job-worker-0.job,job-worker-1.job"}};
  const Engine engine = find_engine(pod);
  CHECK(engine.name == "Volcano");
  CHECK(engine.rank == Number{1, "VC_TASK_INDEX"});
  CHECK(engine.size == Number{2, "VC_WORKER_HOSTS"});
  CHECK(engine.master_addr == Text{"job-worker-0.job", "first of VC_WORKER_HOSTS"});
  // Which of two tasks train together is not told, unless the plug-in for PyTorch does.
  const Environment two = with(pod, {{"VC_MASTER_NUM", "1"}, {"VC_MASTER_HOSTS", "job-master-0.job"}});
  CHECK_FALSE(find_engine(two).size);
  CHECK_FALSE(find_engine(two).problem);
  const Environment told = with(two, {{"KUBERNETES_SERVICE_HOST", "10.0.0.1"},
                                      {"MASTER_ADDR", "job-master-0.job"},
                                      {"WORLD_SIZE", "3"},
                                      {"RANK", "2"}});
  CHECK(find_engine(told).rank == Number{2, "RANK"});
}

TEST_CASE("engine_platforms: SkyPilot", "[base]") {
  const Environment node = {{"SKYPILOT_NODE_RANK", "1"},
                            {"SKYPILOT_NUM_NODES", "2"},
                            {"SKYPILOT_NODE_IPS", "10.0.0.4\n10.0.0.5\n"},
                            {"SKYPILOT_TASK_ID", "sky-2026-11-26-train"}};
  const Engine engine = find_engine(node);
  CHECK(engine.name == "SkyPilot");
  CHECK(engine.rank == Number{1, "SKYPILOT_NODE_RANK"});
  CHECK(engine.size == Number{2, "SKYPILOT_NUM_NODES"});
  CHECK(engine.master_addr == Text{"10.0.0.4", "first of SKYPILOT_NODE_IPS"});
  CHECK(engine.run_id == Text{"sky-2026-11-26-train", "SKYPILOT_TASK_ID"});
  Environment older = node;
  older.erase("SKYPILOT_NUM_NODES");
  CHECK(find_engine(older).size == Number{2, "lines of SKYPILOT_NODE_IPS"});
  older.erase("SKYPILOT_NODE_IPS");
  CHECK(find_engine(older).problem);
}

TEST_CASE("engine_platforms: a training job of SageMaker", "[base]") {
  const auto host = [](const std::string& name) {
    return find_engine({{"SM_HOSTS", R"(["algo-2", "algo-1"])"},
                        {"SM_CURRENT_HOST", name},
                        {"TRAINING_JOB_NAME", "train-17"}});
  };
  const Engine engine = host("algo-2");
  CHECK(full_name(engine) == "SageMaker (job train-17)");
  CHECK(engine.rank == Number{1, "SM_CURRENT_HOST among SM_HOSTS"});
  CHECK(engine.size == Number{2, "SM_HOSTS"});
  CHECK(engine.master_addr == Text{"algo-1", "first of SM_HOSTS"});
  CHECK(engine.run_id->value == "train-17");
  CHECK(host("algo-1").rank->value == 0);
  CHECK(host("algo-3").problem);
}

TEST_CASE("engine_platforms: a multi-node parallel job of AWS Batch counts from its main node", "[base]") {
  const auto node = [](const std::string& index, const std::string& main, const Environment& more) {
    return find_engine(with({{"AWS_BATCH_JOB_ID", "5f2a#" + index},
                             {"AWS_BATCH_JOB_ATTEMPT", "2"},
                             {"AWS_BATCH_JOB_NUM_NODES", "3"},
                             {"AWS_BATCH_JOB_NODE_INDEX", index},
                             {"AWS_BATCH_JOB_MAIN_NODE_INDEX", main}},
                            more));
  };
  const Environment told = {{"AWS_BATCH_JOB_MAIN_NODE_PRIVATE_IPV4_ADDRESS", "10.0.0.1"}};
  const Engine engine = node("1", "0", told);
  CHECK(full_name(engine) == "AWS Batch (job 5f2a)");
  CHECK(engine.rank == Number{1, "AWS_BATCH_JOB_NODE_INDEX"});
  CHECK(engine.size->value == 3);
  CHECK(engine.master_addr == Text{"10.0.0.1", "AWS_BATCH_JOB_MAIN_NODE_PRIVATE_IPV4_ADDRESS"});
  CHECK_FALSE(engine.is_addressed_by_others);
  // The main node is not told its address.
  const Engine main = node("2", "2", {});
  CHECK(main.rank == Number{0, "AWS_BATCH_JOB_NODE_INDEX counted from AWS_BATCH_JOB_MAIN_NODE_INDEX=2"});
  CHECK_FALSE(main.master_addr);
  CHECK(main.is_addressed_by_others);
  CHECK(main.run_id == engine.run_id);
  CHECK(main.master_port == engine.master_port);
  CHECK(node("0", "2", told).rank->value == 1);
  CHECK(node("1", "2", told).rank->value == 2);
  CHECK(node("3", "0", told).problem);
}

TEST_CASE("engine_platforms: a restart of a JobSet is another run, where the manifest tells it", "[base]") {
  const Environment pod = {{"KUBERNETES_SERVICE_HOST", "10.0.0.1"}, {"JOB_COMPLETION_INDEX", "1"}};
  CHECK_FALSE(find_engine(pod).run_id);
  const Engine second = find_engine(with(pod, {{"JOBSET_NAME", "train"}, {"JOBSET_RESTART_ATTEMPT", "1"}}));
  CHECK(second.run_id == Text{"train.1", "JOBSET_NAME and JOBSET_RESTART_ATTEMPT"});
  CHECK_FALSE(second.master_port);
  CHECK(find_engine(with(pod, {{"JOBSET_RESTART_ATTEMPT", "0"}})).run_id ==
        Text{"jobset.0", "JOBSET_RESTART_ATTEMPT"});
  CHECK(error_of([&] { find_engine(with(pod, {{"JOBSET_RESTART_ATTEMPT", "x"}})); }) ==
        "JOBSET_RESTART_ATTEMPT: must be a whole number of at least 0, not 'x' (the engine sets it; --engine "
        "none "
        "ignores it)");
}

}  // namespace engine_platforms_test
