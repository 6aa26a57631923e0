// SPDX-License-Identifier: Apache-2.0
#include "acc/launch/job_status.hpp"

#include "support/catch.hpp"

namespace job_status_test {

using namespace acc;
using namespace acc::launcher;

TEST_CASE("job_status: shows the workers of the current attempt", "[launch]") {
  JobStatus record({.id = "job-1"}, [](int local_rank) {
    return StreamDestinations{{StreamDestination::Kind::file, "/log/" + std::to_string(local_rank)}, {}};
  });
  std::vector<int> started;
  record.on_started([&](const RankView& rank) { started.push_back(rank.rank); });
  record.report(AttemptStarted{.attempt = 0, .round = {.world_size = 4}});
  record.report(WorkerStarted{.rank = 2, .local_rank = 0, .pid = 10});
  record.report(WorkerStarted{.rank = 3, .local_rank = 1, .pid = 11});
  record.report(WorkerFinished{.rank = 3, .local_rank = 1, .pid = 11, .status = Exited{5}});
  CHECK(started == std::vector<int>{2, 3});
  REQUIRE(record.view().ranks.size() == 2);
  CHECK(record.view().world_size == 4);
  CHECK(record.view().ranks[0].ended.empty());
  CHECK(record.view().ranks[0].out.file == "/log/0");
  CHECK(record.view().ranks[1].ended == "exit code 5");

  record.report(AttemptStarted{.attempt = 1, .round = {.world_size = 4}});
  CHECK(record.view().attempt == 1);
  CHECK(record.view().ranks.empty());
}

TEST_CASE("job_status: a view names the command and its processes", "[launch]") {
  LaunchPlan plan;
  plan.worker_command = {"python", "-u", "train.py"};
  plan.run_id = "run";
  plan.max_restarts = 2;
  plan.num_machines = 3;
  plan.nproc_per_node = 2;
  const JobView view = view_of(plan, 10, 11);
  CHECK(view.id == "train-10");
  CHECK(view.agent == 11);
  CHECK(view.world_size == 6);
  CHECK(view.command == plan.worker_command);
}

}  // namespace job_status_test
