// SPDX-License-Identifier: Apache-2.0
#include "acc/notebook/agent.hpp"

#include <fcntl.h>
#include <unistd.h>

#include "acc/base/blocked_signals.hpp"
#include "acc/base/error.hpp"
#include "acc/notebook/notebook_plan.hpp"
#include "acc/notebook/worker.hpp"
#include "support/catch.hpp"
#include "support/errors.hpp"
#include "support/in_child.hpp"

namespace agent_test {

using namespace acc;
using namespace acc::detail;
using namespace acc::test;

namespace {

struct Ran {
  std::string failure = {};
  std::vector<std::optional<std::string>> results = {};
};

Ran run(const WorkerFunction& function) {
  const launcher::LaunchPlan plan = plan_notebook_job({.num_processes = 2, .cpu = true}, this_host());
  int lifeline[2] = {-1, -1};
  REQUIRE(::pipe2(lifeline, O_CLOEXEC) == 0);
  const Descriptor ended(lifeline[0]);
  const Descriptor alive(lifeline[1]);
  const NotebookJob job = {.plan = plan,
                           .function = function,
                           .results = std::vector<SharedText>(2),
                           .caller = ::getpid(),
                           .caller_ended = ended.get()};
  in_child([&]() -> int {
    const BlockedSignals blocked;
    run_agent(job);
  });
  Ran ran = {.failure = error_of([&] { throw_failure(job.outcome); })};
  for (const SharedText& text : job.results) ran.results.push_back(result_in(text));
  return ran;
}

}  // namespace

TEST_CASE("agent: the workers' results are there when it has ended", "[notebook]") {
  const Ran ran = run([] { return "rank " + Environment::of_process().get("RANK"); });
  CHECK(ran.failure == "no error");
  CHECK(ran.results[0].value_or("none") == "rank 0");
  CHECK(ran.results[1].value_or("none") == "rank 1");
}

TEST_CASE("agent: the failure has the rank and the text of the worker", "[notebook]") {
  const Ran ran = run([]() -> std::string {
    if (Environment::of_process().get("RANK") == "1") throw Error({.what = "is empty", .where = "data"});
    ::pause();
    return {};
  });
  CHECK(ran.failure == "rank 1: data: is empty");
}

TEST_CASE("agent: one that was killed has left no outcome, and that is an error", "[notebook]") {
  CHECK(error_of([] { throw_failure(SharedText()); }) ==
        "notebook_launcher: the process that runs the workers was killed; they have ended");
}

}  // namespace agent_test
