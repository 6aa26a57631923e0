// SPDX-License-Identifier: Apache-2.0
#include "acc/plan/worker_environment.hpp"

#include "support/catch.hpp"

namespace worker_environment_test {

using acc::Environment;
using acc::launcher::Attempt;
using acc::launcher::LaunchPlan;
using acc::launcher::worker_command;
using acc::launcher::worker_environment;

namespace {

LaunchPlan two_workers() {
  LaunchPlan plan;
  plan.nproc_per_node = 2;
  plan.environment = Environment{{"OMP_NUM_THREADS", "1"}};
  return plan;
}

std::vector<std::string> expanded(const std::string& word, bool sets_ranks = true) {
  LaunchPlan plan;
  plan.sets_ranks = sets_ranks;
  plan.worker_command = {"$local_rank", word};
  return worker_command(plan, 3);
}

}  // namespace

TEST_CASE("worker_environment: torchrun's variables, all of them, and where to say how far it is", "[plan]") {
  CHECK(worker_environment(two_workers(), 1,
                           {.number = 0,
                            .round = {.world_size = 2, .role_world_size = 2, .master_port = 40001},
                            .folder = "/log/none_x/attempt_0",
                            .progress = "/shm/job.progress/0-"}) ==
        Environment{{"ACC_PROGRESS", "/shm/job.progress/0-1"},
                    {"GROUP_RANK", "0"},
                    {"GROUP_WORLD_SIZE", "1"},
                    {"LOCAL_RANK", "1"},
                    {"LOCAL_WORLD_SIZE", "2"},
                    {"MASTER_ADDR", "127.0.0.1"},
                    {"MASTER_PORT", "40001"},
                    {"OMP_NUM_THREADS", "1"},
                    {"RANK", "1"},
                    {"ROLE_NAME", "default"},
                    {"ROLE_RANK", "1"},
                    {"ROLE_WORLD_SIZE", "2"},
                    {"TORCHELASTIC_ERROR_FILE", "/log/none_x/attempt_0/1/error.json"},
                    {"TORCHELASTIC_MAX_RESTARTS", "0"},
                    {"TORCHELASTIC_RESTART_COUNT", "0"},
                    {"TORCHELASTIC_RUN_ID", "none"},
                    {"TORCHELASTIC_SIGNALS_TO_HANDLE", "SIGTERM,SIGINT,SIGHUP,SIGQUIT"},
                    {"TORCHELASTIC_USE_AGENT_STORE", "True"},
                    {"TORCH_NCCL_ASYNC_ERROR_HANDLING", "1"},
                    {"WORLD_SIZE", "2"}});
}

TEST_CASE("worker_environment: one plain process gets no rank", "[plan]") {
  LaunchPlan plan;
  plan.sets_ranks = false;
  plan.environment = Environment{{"ACCELERATE_MIXED_PRECISION", "no"}};
  CHECK(worker_environment(plan, 0, {}) == plan.environment);
}

TEST_CASE("worker_environment: an inherited NCCL choice is kept", "[plan]") {
  LaunchPlan plan = two_workers();
  plan.inherited = Environment{{"TORCH_NCCL_ASYNC_ERROR_HANDLING", "0"}};
  CHECK(worker_environment(plan, 0, {}).get("TORCH_NCCL_ASYNC_ERROR_HANDLING") == "0");
}

TEST_CASE("worker_environment: no log folder, no error file, and no page of a launcher above", "[plan]") {
  const Environment environment = worker_environment(two_workers(), 0, {});
  CHECK(environment.find("TORCHELASTIC_ERROR_FILE") == "");
  CHECK(environment.find("ACC_PROGRESS") == "");
}

TEST_CASE("worker_environment: a virtual local rank is 0 with a device of its own", "[plan]") {
  LaunchPlan plan = two_workers();
  plan.virtual_local_rank = true;
  plan.device_of_rank = {"4", "7"};
  const Environment environment = worker_environment(plan, 1, {.round = acc::launcher::expected_round(plan)});
  CHECK(environment.get("LOCAL_RANK") == "0");
  CHECK(environment.get("RANK") == "1");
  CHECK(environment.get("CUDA_VISIBLE_DEVICES") == "7");
}

TEST_CASE("worker_environment: an isolated worker keeps its local rank", "[plan]") {
  LaunchPlan plan = two_workers();
  plan.device_of_rank = {"4", "7"};
  const Environment environment = worker_environment(plan, 1, {.round = acc::launcher::expected_round(plan)});
  CHECK(environment.get("LOCAL_RANK") == "1");
  CHECK(environment.get("CUDA_VISIBLE_DEVICES") == "7");
}

TEST_CASE("worker_environment: a single worker without a rank is isolated, too", "[plan]") {
  LaunchPlan plan;
  plan.sets_ranks = false;
  plan.device_of_rank = {"4"};
  CHECK(worker_environment(plan, 0, {}) == Environment{{"CUDA_VISIBLE_DEVICES", "4"}});
}

TEST_CASE("worker_environment: the local rank is expanded, every other $ stays", "[plan]") {
  CHECK(expanded("a") == std::vector<std::string>{"$local_rank", "a"});
  CHECK(expanded("--f=$local_rank.txt")[1] == "--f=3.txt");
  CHECK(expanded("${local_rank}x$local_rank")[1] == "3x3");
  CHECK(expanded("kill $$")[1] == "kill $$");
  CHECK(expanded("$HOME $local_ranks ${local")[1] == "$HOME $local_ranks ${local");
  CHECK(expanded("$$local_rank $${local_rank}")[1] == "$local_rank ${local_rank}");
}

TEST_CASE("worker_environment: the arguments of accelerate's plain jobs stay as they are", "[plan]") {
  for (const char* word : {"$local_rank", "${local_rank}x", "$$local_rank"})
    CHECK(expanded(word, false)[1] == word);
}

}  // namespace worker_environment_test
