// SPDX-License-Identifier: Apache-2.0
#include "acc/base/worker_env.hpp"

#include "support/catch.hpp"
#include "support/errors.hpp"

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
  CHECK(error_of([] {
          acc::read_worker_env(Environment{{"RANK", "x"}, {"WORLD_SIZE", "2"}});
        }) ==
        "RANK: must be a whole number of at least 0, not 'x' (the launcher sets it; start the program with "
        "`acc launch`)");
  CHECK(error_of([] {
          acc::read_worker_env(Environment{{"RANK", "0"}});
        }).starts_with("RANK: set without its partner"));
  CHECK(error_of([] {
          acc::read_worker_env(Environment{{"RANK", "2"}, {"WORLD_SIZE", "2"}});
        }).starts_with("RANK: 2 is not below WORLD_SIZE=2"));
  CHECK(error_of([] {
          acc::read_worker_env(Environment{{"MASTER_PORT", "70000"}});
        }).starts_with("MASTER_PORT: "));
}
