// SPDX-License-Identifier: Apache-2.0
#include "acc/plan/preemption.hpp"

#include <algorithm>
#include <csignal>

#include "acc/plan/resolve.hpp"
#include "support/catch.hpp"
#include "support/inputs.hpp"

namespace preemption_test {

using namespace acc;
using namespace acc::launcher;
using namespace acc::test;
using namespace std::chrono_literals;

namespace {

LaunchPlan plan_with(std::vector<std::string> flags, const Environment& variables,
                     Dialect dialect = Dialect::launch) {
  flags.emplace_back("train.py");
  LaunchInputs launch_inputs = inputs(flags, dialect);
  launch_inputs.environment.overlay(variables);
  return resolve(launch_inputs);
}

const Environment kSlurm = {{"SLURM_JOB_ID", "4"}};
const Environment kMpirun = {{"OMPI_COMM_WORLD_RANK", "0"},
                             {"OMPI_COMM_WORLD_SIZE", "1"},
                             {"OMPI_COMM_WORLD_LOCAL_RANK", "0"},
                             {"OMPI_COMM_WORLD_LOCAL_SIZE", "1"}};

}  // namespace

TEST_CASE("preemption: workers are killed before the engine kills acc", "[plan]") {
  CHECK(grace_within(1s) == 800ms);
  CHECK(grace_within(10s) == 8s);
  CHECK(grace_within(30s) == 25s);
  CHECK(grace_within(600s) == 595s);
  CHECK(grace_within(0s) == 0s);
}

TEST_CASE("preemption: the default grace fits into that of the engine", "[plan]") {
  const LaunchPlan slurm = plan_with({}, kSlurm);
  CHECK(slurm.shutdown_timeout == 25s);
  CHECK(slurm.settings.setting(key::shutdown_timeout).origin ==
        "Slurm kills 30 s after SIGTERM (KillWait of slurm.conf)");
  CHECK(slurm.notes.empty() == plan_with({}, {}).notes.empty());
  CHECK(plan_with({"--shutdown-timeout", "500"}, kSlurm).shutdown_timeout == 500s);
  CHECK(plan_with({"--shutdown-timeout", "7"}, kSlurm).settings.setting(key::shutdown_timeout).origin ==
        "--shutdown-timeout");
  Environment torchruns = kSlurm;
  torchruns.set("TORCH_ELASTIC_SHUTDOWN_TIMEOUT", "50");
  CHECK(plan_with({}, torchruns).shutdown_timeout == 50s);
  CHECK(plan_with({}, {}).shutdown_timeout == 30s);
  // Slurm signals the jobs that do not ask it for anything, too.
  CHECK(plan_with({"--engine", "none"}, kSlurm).shutdown_timeout == 25s);
  CHECK(plan_with({}, kSlurm, Dialect::torchrun).shutdown_timeout == 25s);
}

TEST_CASE("preemption: mpirun's grace is too short for a checkpoint, which is said once", "[plan]") {
  const std::string note =
      "Open MPI kills 1 s after SIGTERM; a checkpoint at the end needs mpirun --mca "
      "odls_base_sigkill_timeout ";
  const auto has_note = [](const LaunchPlan& plan, const std::string& text) {
    return std::ranges::find(plan.notes, text) != plan.notes.end();
  };
  const LaunchPlan plan = plan_with({}, kMpirun);
  CHECK(plan.shutdown_timeout == 800ms);
  CHECK(has_note(plan, note + "60"));
  const LaunchPlan longer = plan_with({"--shutdown-timeout", "100"}, kMpirun);
  CHECK(longer.shutdown_timeout == 100s);
  CHECK(has_note(longer, note + "125"));
  Environment changed = kMpirun;
  changed.set("OMPI_MCA_odls_base_sigkill_timeout", "60");
  CHECK(plan_with({}, changed).shutdown_timeout == 30s);
  CHECK_FALSE(has_note(plan_with({}, changed), note + "60"));
  Environment second = kMpirun;
  second.overlay({{"OMPI_COMM_WORLD_RANK", "1"}, {"OMPI_COMM_WORLD_SIZE", "2"}, {"MASTER_ADDR", "node0"}});
  CHECK_FALSE(has_note(plan_with({}, second), note + "60"));
}

TEST_CASE("preemption: an engine's SIGUSR1 and SIGUSR2 are notices, and its SIGTERM repeats", "[plan]") {
  const LaunchPlan slurm = plan_with({}, kSlurm);
  CHECK(slurm.notice_signals == std::set<int>{SIGUSR1, SIGUSR2});
  CHECK(slurm.repeated_sigterm == 24h);
  CHECK_FALSE(slurm.requeue_on_preemption);
  const LaunchPlan alone = plan_with({}, {});
  CHECK(alone.notice_signals.empty());
  CHECK(alone.repeated_sigterm == 100ms);
  // Somebody who asks for a requeue sends notices.
  const LaunchPlan asked = plan_with({"--requeue-on-preemption"}, {});
  CHECK(asked.requeue_on_preemption);
  CHECK(asked.notice_signals == std::set<int>{SIGUSR1, SIGUSR2});
  CHECK(asked.repeated_sigterm == 100ms);
  // A signal that was asked to end the job does.
  CHECK(plan_with({"--signals-to-handle", "SIGUSR1"}, kSlurm).notice_signals == std::set<int>{SIGUSR2});
}

TEST_CASE("preemption: SIGUSR1 and SIGUSR2 stay ignored if acc was started so, unless they have a meaning",
          "[plan]") {
  const auto plan_ignoring = [](std::vector<std::string> flags, const Environment& variables = {}) {
    flags.emplace_back("train.py");
    LaunchInputs launch_inputs = inputs(flags, Dialect::torchrun);
    launch_inputs.environment.overlay(variables);
    launch_inputs.ignored_signals = {SIGUSR1};
    return resolve(launch_inputs);
  };
  const LaunchPlan usual = plan_ignoring({});
  CHECK(usual.ignored_signals == std::set<int>{SIGUSR1});
  CHECK(signals_that_workers_ignore(usual) == std::vector<int>{SIGUSR1});
  CHECK_FALSE(handled_signals(usual).contains(SIGUSR1));
  const LaunchPlan named = plan_ignoring({"--signals-to-handle", "SIGTERM,SIGUSR1"});
  CHECK(signals_that_workers_ignore(named).empty());
  CHECK(handled_signals(named).contains(SIGUSR1));
  // An engine's notices are not for the shell that started acc.
  const LaunchPlan noticed = plan_ignoring({}, kSlurm);
  CHECK(signals_that_workers_ignore(noticed) == std::vector<int>{SIGUSR1, SIGUSR2});
  CHECK(handled_signals(noticed).contains(SIGUSR1));
}

TEST_CASE("preemption: hosts get all signals that end the job, and an engine's notices", "[plan]") {
  const auto signals_with = [](std::vector<std::string> flags, const Environment& variables = {}) {
    flags.emplace_back("train.py");
    LaunchInputs launch_inputs = inputs(flags, Dialect::launch);
    launch_inputs.environment.overlay(variables);
    return signals_for_hosts(launch_inputs, Settings(launch_inputs));
  };
  const std::set<int> usual = {SIGHUP, SIGINT, SIGQUIT, SIGTERM};
  CHECK(signals_with({}) == usual);
  const std::vector<std::string> flags = {"--signals-to-handle", "SIGTERM,SIGRTMIN,SIGXCPU,SIGUSR2"};
  CHECK(signals_with(flags) == std::set<int>{SIGTERM, SIGRTMIN, SIGXCPU, SIGUSR2});
  CHECK(signals_with(flags, kSlurm) == std::set<int>{SIGTERM, SIGRTMIN, SIGXCPU, SIGUSR1, SIGUSR2});
  CHECK(signals_with({"--requeue-on-preemption"}).contains(SIGUSR1));
}

}  // namespace preemption_test
