// SPDX-License-Identifier: Apache-2.0
#include "acc/report/figures.hpp"

#include <nlohmann/json.hpp>

#include "support/catch.hpp"
#include "support/event_log.hpp"

namespace figures_test {

using namespace acc::launcher;

TEST_CASE("outcome_text: how a job ended is one sentence", "[report]") {
  JobHistory history = {.time = {10, 100}};
  CHECK(outcome_text(history) == "No end in these logs; they reach over 1 min 30 s.");
  history.last = {.name = "gpu_use", .time = 100, .host = "node1"};
  CHECK(outcome_text(history).ends_with(
      " The last event is gpu use on node1, at 1970-01-01 00:01:40 UTC; no rank was running."));
  history.last.running = {0, 1, 3};
  CHECK(outcome_text(history).ends_with(
      "; ranks 0, 1, 3 were running. The job goes on, or acc or its machine ended at once."));
  history.exit_code = 0;
  CHECK(outcome_text(history) == "Succeeded after 1 min 30 s.");
  history.restarts = 2;
  CHECK(outcome_text(history) == "Succeeded after 1 min 30 s, with 2 restarts.");
  history.exit_code = 7;
  CHECK(outcome_text(history) == "Failed with exit code 7 after 1 min 30 s, with 2 restarts.");
  history.attempts = {{.problem = "all ranks hung"}};
  history.failures = {{.rank = 3, .host = "node1", .status = "SIGSEGV"}};
  CHECK(outcome_text(history) ==
        "Failed with exit code 7 after 1 min 30 s, with 2 restarts: all ranks hung.");
  history.cause = history.failures[0];
  CHECK(outcome_text(history) ==
        "Failed after 1 min 30 s, with 2 restarts: rank 3 on node1 ended with SIGSEGV.");
  history.stop_signal = "SIGINT";
  CHECK(outcome_text(history) == "Stopped by SIGINT after 1 min 30 s, with 2 restarts.");
}

TEST_CASE("job_title: the script, not its interpreter", "[report]") {
  CHECK(job_title({.command = {"/usr/bin/python3.11", "-u", "/data/train.py", "--epochs"}}) == "train.py");
  CHECK(job_title({.command = {"./mnist"}}) == "mnist");
  CHECK(job_title({}) == "job");
}

TEST_CASE("figures_json: has what the page shows", "[report]") {
  acc::test::EventLogText log;
  log.add(10, "attempt_started", 0, R"("nodes":1,"world_size":2)")
      .progress(20, 0, 0, 1, 0)
      .progress(30, 0, 0, 6, 0);
  log.add(30, "worker_finished").add(30, "finished", 0, R"("exit_code":0)");
  const auto figures = nlohmann::json::parse(figures_json(history_of(log)));
  CHECK(figures["schema"] == 1);
  CHECK(figures["goodput"] == 0.5);
  CHECK(figures["seconds"]["starting"] == 10);
  CHECK(figures["steps"] == 6);
  CHECK(figures["world_size"] == 2);
  CHECK(figures["exit_code"] == 0);
  CHECK(figures["attempts"][0]["end_s"] == 20);
}

TEST_CASE("figures_json: of a job whose agent was killed it has where the log breaks off", "[report]") {
  acc::test::EventLogText log;
  log.add(10, "attempt_started", 0, R"("nodes":1,"world_size":3)");
  for (const char* rank : {"0", "1", "2"}) log.add(11, "worker_started", 0, R"("rank":)" + std::string(rank));
  log.add(12, "worker_finished", 0, R"("rank":1)").progress(20, 0, 0, 1, 0);
  const auto figures = nlohmann::json::parse(figures_json(history_of(log)));
  CHECK(figures["exit_code"] == nullptr);
  CHECK(figures["last_event"]["event"] == "progress");
  CHECK(figures["last_event"]["time_s"] == 10);
  CHECK(figures["last_event"]["running_ranks"] == std::vector<int>{0, 2});
}

}  // namespace figures_test
