// SPDX-License-Identifier: Apache-2.0
#include "acc/control/job_trust.hpp"

#include <unistd.h>

#include "support/catch.hpp"

namespace job_trust_test {

using namespace acc::launcher;

namespace {

// Of another user are 1 and, with the agent 41 of this one above it, 43.
bool is_of_user(pid_t pid) {
  return pid == 40 || pid == 41 || pid == 42;
}

}  // namespace

TEST_CASE("job_trust: the ranks of a job are processes of its user, or below its agent", "[control]") {
  ProcessTable processes;
  processes.add({.pid = 1});
  for (const pid_t pid : {40, 41, 42, 43}) processes.add({.pid = pid, .parent = pid == 43 ? 41 : 1});
  JobView job = {.ranks = {{.pid = 1}, {.pid = 42}, {.pid = 43}, {.pid = 44}}};
  forget_processes_of_others(job, processes, 41, is_of_user);
  CHECK(job.ranks == std::vector<RankView>{{.pid = 0}, {.pid = 42}, {.pid = 43}, {.pid = 0}});
}

TEST_CASE("job_trust: a job that names the process of another user is not the true one", "[control]") {
  for (const char* id : {"train-40", "train-40-2"}) {
    CHECK(has_id_of_process({.id = id, .pid = 40}, is_of_user));
    CHECK_FALSE(has_id_of_process({.id = id, .pid = 41}, is_of_user));
  }
  CHECK_FALSE(has_id_of_process({.id = "train-1", .pid = 1}, is_of_user));
  CHECK_FALSE(has_id_of_process({.id = "40", .pid = 40}, is_of_user));
}

TEST_CASE("job_trust: processes have the user that runs them", "[control]") {
  CHECK(processes_of(::geteuid())(::getpid()));
  CHECK_FALSE(processes_of(::geteuid() + 1)(::getpid()));
  CHECK_FALSE(processes_of(::geteuid())(0));
}

}  // namespace job_trust_test
