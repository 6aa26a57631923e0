// SPDX-License-Identifier: Apache-2.0
#include "acc/launch/agent.hpp"

#include <csignal>
#include <utility>

#include "acc/base/progress_page.hpp"
#include "acc/launch/launch_report.hpp"
#include "support/catch.hpp"
#include "support/errors.hpp"
#include "support/fake_processes.hpp"
#include "support/temporary_folder.hpp"

namespace agent_test {

using namespace acc;
using namespace acc::launcher;
using namespace acc::test;
using namespace std::chrono_literals;

namespace {

struct KeepingReporter : Reporter {
  void report(const Event& event) override { events.push_back(event); }

  template <typename Kind>
  std::vector<Kind> all() const {
    std::vector<Kind> matches;
    for (const Event& event : events) {
      if (const auto* one = std::get_if<Kind>(&event)) matches.push_back(*one);
    }
    return matches;
  }

  std::vector<Event> events = {};
};

struct CountingRendezvous : Rendezvous {
  void join() override {
    on_round();
    ++rounds;
    if (answers)
      emit(RoundReady{{.machine_rank = machine_rank, .num_machines = num_machines, .master_port = 4321},
                      restarts});
  }
  void fail(const RoundOver& failure) override {
    failures.push_back(failure);
    RoundOver verdict = others.value_or(failure);
    if (verdict.restart) ++restarts;
    emit(verdict);
  }
  void finish() override {
    ++finished;
    if (others) return emit(*others);
    emit(JobDone{});
  }
  void announce_end(int signal) override { announced.push_back(signal); }
  void stop_job(int code) override { stopped_with = code; }
  void leave(const std::string& reason, int code) override {
    left_because = reason;
    left_with = code;
    emit(Left{});
  }
  using Rendezvous::emit;

  std::function<void()> on_round = [] {};
  bool answers = true;
  int num_machines = 1;
  int machine_rank = 0;
  /// The decision of the group, whatever this node requests.
  std::optional<RoundOver> others = {};
  int rounds = 0;
  int restarts = 0;
  int finished = 0;
  std::vector<RoundOver> failures = {};
  std::vector<int> announced = {};
  std::string left_because = "did not leave";
  int left_with = -1;
  std::optional<int> stopped_with = {};
};

LaunchPlan plan_of(int workers, int max_restarts = 0) {
  LaunchPlan plan;
  plan.worker_command = {"train", "--rank=$local_rank"};
  plan.program = "/bin/train";
  plan.nproc_per_node = workers;
  plan.max_restarts = max_restarts;
  plan.output.no_logs = true;
  return plan;
}

struct Job {
  FakeProcesses processes;
  CountingRendezvous rendezvous;
  KeepingReporter reporter;

  CheckNodes check_nodes;
  FlushParts flush;

  std::filesystem::path watch_folder = {};

  LaunchReport run(const LaunchPlan& plan, const LogFolder& logs = {}, const CgroupPaths& cgroups = {},
                   const KernelLogPaths& kernel_log = {}) {
    return acc::launcher::run(plan, {.processes = processes,
                                     .rendezvous = rendezvous,
                                     .reporter = reporter,
                                     .check_nodes = check_nodes,
                                     .flush = flush,
                                     .logs = logs,
                                     .watch_folder = watch_folder,
                                     .cgroups = cgroups,
                                     .kernel_log = kernel_log});
  }
};

}  // namespace

TEST_CASE("agent: all workers end with 0", "[launch]") {
  Job job;
  job.processes.will_end(1, Exited{0});
  job.processes.will_end(0, Exited{0}, 5s);
  const LaunchReport report = job.run(plan_of(2));
  CHECK(report.exit_code == 0);
  CHECK_FALSE(report.first_failure);
  CHECK(job.processes.signals().empty());  // an early exit code 0 stops no other worker
  CHECK(job.processes.elapsed() >= 5s);
}

TEST_CASE("agent: the first failure stops the other workers", "[launch]") {
  Job job;
  job.processes.will_end(1, Exited{7});
  const LaunchReport report = job.run(plan_of(3));
  REQUIRE(report.first_failure);
  CHECK(report.first_failure->rank == 1);
  CHECK(report.first_failure->pid == 1001);
  CHECK(report.first_failure->status == ExitStatus(Exited{7}));
  CHECK(report.exit_code == 7);
  CHECK(report.stopped_ranks == std::vector<int>{0, 2});
  CHECK(report.killed_ranks.empty());
  CHECK(job.processes.signals() == Signals{{0, SIGTERM}, {2, SIGTERM}});
}

TEST_CASE("agent: a failed worker of an engine's task has its local rank on the machine", "[launch]") {
  Job job;
  job.processes.will_end(0, Exited{7});
  LaunchPlan plan = plan_of(1);
  plan.output.first_local_rank = 3;
  const LaunchReport report = job.run(plan);
  REQUIRE(report.first_failure);
  CHECK(report.first_failure->local_rank == 3);
  CHECK(report.own_failure);
}

TEST_CASE("agent: knows the workers that had ended before a failure", "[launch]") {
  Job job;
  job.processes.will_end(0, Exited{0});
  job.processes.will_end(1, Exited{7}, 5s);
  const LaunchReport report = job.run(plan_of(3));
  CHECK(report.ended_ranks == std::vector<int>{0});
  CHECK(report.stopped_ranks == std::vector<int>{2});
}

TEST_CASE("agent: a worker ended by a signal gives 128 + n", "[launch]") {
  Job job;
  job.processes.will_end(0, Signaled{SIGSEGV, true});
  CHECK(job.run(plan_of(2)).exit_code == 139);
}

TEST_CASE("agent: a worker that does not stop is killed after the grace period", "[launch]") {
  Job job;
  job.processes.will_end(0, Exited{1});
  job.processes.ignores_signals(1);
  LaunchPlan plan = plan_of(2);
  plan.shutdown_timeout = 7s;
  const LaunchReport report = job.run(plan);
  CHECK(report.killed_ranks == std::vector<int>{1});
  CHECK(job.processes.signals() == Signals{{1, SIGTERM}, {1, SIGKILL}});
  CHECK(job.processes.elapsed() >= 7s);
  CHECK(job.processes.elapsed() < 8s);
  REQUIRE(job.reporter.all<Killed>().size() == 1);
  CHECK_FALSE(job.reporter.all<Killed>()[0].second_signal);
}

TEST_CASE("agent: restarts the whole group while restarts are left", "[launch]") {
  Job job;
  job.processes.will_end_in(0, 1, Exited{3});
  job.processes.will_end_in(1, 0, Exited{0});
  job.processes.will_end_in(1, 1, Exited{0});
  job.rendezvous.on_round = [&] { CHECK(job.processes.running() == 0); };
  const LaunchReport report = job.run(plan_of(2, 3));
  CHECK(report.exit_code == 0);
  CHECK(report.restarts == 1);
  CHECK_FALSE(report.first_failure);
  CHECK(job.rendezvous.rounds == 2);
  CHECK(job.processes.ended_attempts() == 2);
  REQUIRE(job.processes.started().size() == 4);
  CHECK(job.processes.started()[0].environment.get("TORCHELASTIC_RESTART_COUNT") == "0");
  CHECK(job.processes.started()[3].environment.get("TORCHELASTIC_RESTART_COUNT") == "1");
  const auto restarts = job.reporter.all<Restarting>();
  REQUIRE(restarts.size() == 1);
  CHECK(restarts[0].cause->rank == 1);
  CHECK(restarts[0].restart == 1);
  CHECK(restarts[0].max_restarts == 3);
}

TEST_CASE("agent: no process of an attempt is alive when the next round begins", "[launch]") {
  Job job;
  job.processes.will_end_in(0, 0, Exited{3});
  job.processes.will_end_in(1, 0, Exited{0});
  job.processes.will_leave_orphans(2);
  std::vector<std::size_t> orphans_signalled;
  job.rendezvous.on_round = [&] { orphans_signalled.push_back(job.processes.orphan_signals().size()); };
  job.run(plan_of(1, 1));
  CHECK(orphans_signalled == std::vector<std::size_t>{0, 1});
}

TEST_CASE("agent: ends the job when no restarts are left", "[launch]") {
  Job job;
  job.processes.will_end(0, Exited{9});
  const LaunchReport report = job.run(plan_of(1, 2));
  CHECK(report.exit_code == 9);
  CHECK(report.restarts == 2);
  CHECK(job.processes.started().size() == 3);
  REQUIRE(report.first_failure);
  CHECK(report.first_failure->attempt == 2);
}

TEST_CASE("agent: a failure that is not to be restarted ends the job with the reason", "[launch]") {
  Job job;
  job.processes.will_end(0, Exited{2}, 2s);
  LaunchPlan plan = plan_of(1, 5);
  plan.retry_on.excluded.exit_codes = {2};
  CHECK(job.run(plan).exit_code == 2);
  CHECK(job.processes.started().size() == 1);
  const auto warnings = job.reporter.all<Warning>();
  REQUIRE(warnings.size() == 1);
  CHECK(warnings[0].text.starts_with("not restarted: exit code 2"));
}

TEST_CASE("agent: a failure soon after the start is not restarted", "[launch]") {
  Job job;
  job.processes.will_end(0, Exited{1}, 2s);
  LaunchPlan plan = plan_of(1, 5);
  plan.min_uptime = 3s;
  CHECK(job.run(plan).restarts == 0);
  plan.min_uptime = 2s;
  Job again;
  again.processes.will_end(0, Exited{1}, 2s);
  CHECK(again.run(plan).restarts == 5);
}

TEST_CASE("agent: a failure tells how far the workers here got, before their pages are removed", "[launch]") {
  const test::TemporaryFolder folder;
  LaunchPlan plan = plan_of(2, 3);
  plan.restarts_without_progress = 1;
  const LogFolder logs = LogFolder::make(plan, [](const auto&) {}, folder.path() / "pages");
  Job job;
  job.processes.will_end(0, Exited{1});
  // Of the second attempt no rank has a page.
  job.rendezvous.on_round = [&] {
    if (job.rendezvous.rounds == 2) job.processes.before_start = [] {};
  };
  job.processes.before_start = [&] {
    ProgressPage(logs.page_prefix(job.rendezvous.restarts) + "0").set_global_step(3);
    ProgressPage(logs.page_prefix(job.rendezvous.restarts) + "1").set_global_step(5);
  };
  job.run(plan, logs);
  REQUIRE(job.rendezvous.failures.size() == 4);
  CHECK(job.rendezvous.failures[0].reached == StepsReached{.is_known = true, .steps = 5});
  CHECK(job.rendezvous.failures[1].reached == StepsReached{.is_known = true, .steps = 5});
  CHECK(job.rendezvous.failures[2].reached == StepsReached{.is_known = true, .steps = 0});
  CHECK(job.reporter.all<Warning>().empty());
}

TEST_CASE("agent: an attempt whose pages were removed is not one without progress", "[launch]") {
  const test::TemporaryFolder folder;
  const auto runtime = folder.path() / "acc";
  std::filesystem::create_directory(runtime);
  LaunchPlan plan = plan_of(1, 3);
  plan.restarts_without_progress = 1;
  const LogFolder logs = LogFolder::make(plan, [](const auto&) {}, runtime / "pages");
  Job job;
  job.processes.will_end(0, Exited{1});
  job.processes.before_start = [&] {
    ProgressPage(logs.page_prefix(job.rendezvous.restarts) + "0").set_global_step(3);
    // As a logout does; who logs in again has another folder.
    if (job.rendezvous.rounds == 2) std::filesystem::remove_all(runtime);
    if (job.rendezvous.rounds == 3) std::filesystem::create_directory(runtime);
  };
  CHECK(job.run(plan, logs).restarts == 3);
  REQUIRE(job.rendezvous.failures.size() == 4);
  CHECK(job.rendezvous.failures[0].reached == StepsReached{.is_known = true, .steps = 3});
  CHECK_FALSE(job.rendezvous.failures[1].reached.is_known);
  CHECK_FALSE(job.rendezvous.failures[2].reached.is_known);
  const auto warnings = job.reporter.all<Warning>();
  REQUIRE(warnings.size() == 1);
  CHECK(warnings[0].text.find((runtime / "pages").string()) != std::string::npos);
}

TEST_CASE("agent: an attempt that could not be watched is not one without progress", "[launch]") {
  const test::TemporaryFolder folder;
  LaunchPlan plan = plan_of(1, 2);
  plan.restarts_without_progress = 1;
  const LogFolder logs = LogFolder::make(plan, [](const auto&) {}, folder.path() / "pages");
  Job job;
  job.watch_folder = folder.path() / "job.watch";
  std::filesystem::create_directory(job.watch_folder);
  job.processes.will_end(0, Exited{1});
  job.processes.before_start = [&] {
    if (job.rendezvous.rounds == 1)
      ProgressPage(logs.page_prefix(job.rendezvous.restarts) + "0").set_global_step(3);
    else
      std::filesystem::remove_all(job.watch_folder);
  };
  CHECK(job.run(plan, logs).restarts == 2);
  CHECK(job.rendezvous.failures[0].reached.is_known);
  CHECK_FALSE(job.rendezvous.failures[1].reached.is_known);
  const auto warnings = job.reporter.all<Warning>();
  REQUIRE(warnings.size() == 1);
  CHECK(warnings[0].text.find(job.watch_folder.string()) != std::string::npos);
}

TEST_CASE("agent: --restarts-without-progress has no effect where no worker says how far it is", "[launch]") {
  LaunchPlan plan = plan_of(1, 3);
  plan.restarts_without_progress = 1;
  Job job;
  job.processes.will_end(0, Exited{1});
  CHECK(job.run(plan).restarts == 3);
  CHECK_FALSE(job.rendezvous.failures[0].reached.is_known);
  const auto warnings = job.reporter.all<Warning>();
  REQUIRE(warnings.size() == 1);
  CHECK(warnings[0].text.starts_with("--restarts-without-progress has no effect"));
}

TEST_CASE("agent: the group says why there is no restart", "[launch]") {
  Job job;
  job.processes.will_end(0, Exited{3});
  job.rendezvous.others = RoundOver{.exit_code = 3, .reason = "not restarted: no progress"};
  const LaunchReport report = job.run(plan_of(1, 5));
  CHECK(report.exit_code == 3);
  CHECK(report.restarts == 0);
  const auto warnings = job.reporter.all<Warning>();
  REQUIRE(warnings.size() == 1);
  CHECK(warnings[0].text == "not restarted: no progress");
}

TEST_CASE("agent: a stop signal is forwarded and gives 128 + n, without a restart", "[launch]") {
  const int signal = GENERATE(SIGINT, SIGTERM, SIGHUP, SIGQUIT);
  Job job;
  job.processes.signal_arrives(signal, 10ms);
  const LaunchReport report = job.run(plan_of(2, 5));
  CHECK(report.exit_code == 128 + signal);
  CHECK(report.stop_signal == signal);
  CHECK_FALSE(report.first_failure);
  CHECK(job.processes.signals() == Signals{{0, signal}, {1, signal}});
  CHECK(job.processes.started().size() == 2);
}

TEST_CASE("agent: a signal that the plan names ends the job, too", "[launch]") {
  Job job;
  job.processes.signal_arrives(SIGUSR1, 10ms);
  LaunchPlan plan = plan_of(1, 5);
  plan.stop_signals.insert(SIGUSR1);
  const LaunchReport report = job.run(plan);
  CHECK(report.exit_code == 128 + SIGUSR1);
  CHECK(job.processes.signals() == Signals{{0, SIGUSR1}, {0, SIGKILL}});
}

TEST_CASE("agent: SIGTSTP stops the workers until SIGCONT, also those started meanwhile", "[launch]") {
  Job job;
  job.processes.will_end_in(0, 0, Exited{1});
  job.processes.will_end(0, Exited{0}, 20ms);
  job.processes.before_start = [&] {
    if (job.processes.started().empty()) job.processes.post(SignalArrived{SIGTSTP});
  };
  job.processes.signal_arrives(SIGCONT, 10ms);
  CHECK(job.run(plan_of(1, 1)).exit_code == 0);
  CHECK(job.processes.signals() == Signals{{0, SIGSTOP}, {0, SIGSTOP}, {0, SIGCONT}});
  CHECK(job.reporter.all<Suspended>().size() == 1);
  CHECK(job.reporter.all<Resumed>().size() == 1);
}

TEST_CASE("agent: a job that is suspended while it is stopped goes on when it is asked to end", "[launch]") {
  Job job;
  job.processes.will_end(0, Exited{3});
  job.processes.ignores_signals(1);
  job.processes.will_end(1, Exited{0}, 5s);
  job.processes.signal_arrives(SIGTSTP, 1s);
  job.processes.signal_arrives(SIGTERM, 2s);
  job.run(plan_of(2));
  CHECK(job.processes.signals() == Signals{{1, SIGTERM}, {1, SIGSTOP}, {1, SIGTERM}, {1, SIGCONT}});
}

TEST_CASE("agent: when the reader of its output is gone, the job ends as a pipeline does", "[launch]") {
  Job job;
  job.processes.reader_is_lost(10ms);
  const LaunchReport report = job.run(plan_of(2, 5));
  CHECK(report.exit_code == 128 + SIGPIPE);
  CHECK_FALSE(report.first_failure);
  CHECK(job.processes.signals() == Signals{{0, SIGTERM}, {1, SIGTERM}});
  CHECK(job.processes.started().size() == 2);
}

TEST_CASE("agent: a worker's failure is reported even when the reader of its output is gone", "[launch]") {
  Job job;
  job.processes.will_end(0, Exited{5});
  job.processes.reader_is_lost(10ms);
  CHECK(job.run(plan_of(1)).exit_code == 5);
}

TEST_CASE("agent: lost output changes the exit code of success only", "[launch]") {
  Job job;
  job.processes.will_end(0, Exited{0});
  job.processes.loses_output("3 bytes of output are lost");
  CHECK(job.run(plan_of(1)).exit_code == 1);
  REQUIRE(job.reporter.all<Warning>().size() == 1);
  CHECK(job.reporter.all<Warning>()[0].text == "3 bytes of output are lost; the exit code is 1 for that");
  CHECK(job.reporter.all<Finished>()[0].report.exit_code == 1);
  Job failed;
  failed.processes.will_end(0, Exited{5});
  failed.processes.loses_output("3 bytes of output are lost");
  CHECK(failed.run(plan_of(1)).exit_code == 5);
}

TEST_CASE("agent: the report knows what is visible just above", "[launch]") {
  Job job;
  job.processes.will_end(1, Exited{3});
  job.processes.writes_to_stderr(1, "boom\n");
  job.processes.shows_on_terminal(1);
  CHECK(job.run(plan_of(2)).first_failure->just_above);
  Job other;
  other.processes.will_end(1, Exited{3});
  CHECK_FALSE(other.run(plan_of(2)).first_failure->just_above);
}

TEST_CASE("agent: after a signal no worker is started", "[launch]") {
  Job job;
  job.processes.signal_arrives(SIGTERM);
  CHECK(job.run(plan_of(2)).exit_code == 143);
  CHECK(job.processes.started().empty());
}

TEST_CASE("agent: a second signal kills at once", "[launch]") {
  Job job;
  job.processes.ignores_signals(0);
  job.processes.signal_arrives(SIGINT, 10ms);
  job.processes.signal_arrives(SIGTERM, 500ms);
  const LaunchReport report = job.run(plan_of(1));
  CHECK(report.exit_code == 130);  // the first one
  CHECK(report.killed_ranks == std::vector<int>{0});
  CHECK(job.processes.elapsed() < 1s);
  REQUIRE(job.reporter.all<Killed>().size() == 1);
  CHECK(job.reporter.all<Killed>()[0].second_signal);
}

TEST_CASE("agent: a repeated signal within 100 ms counts once", "[launch]") {
  Job job;
  job.processes.ignores_signals(0);
  job.processes.signal_arrives(SIGTERM, 10ms);
  job.processes.signal_arrives(SIGTERM, 15ms);
  job.run(plan_of(1));
  CHECK(job.processes.signals() == Signals{{0, SIGTERM}, {0, SIGKILL}});
  CHECK(job.processes.elapsed() >= 30s);
}

TEST_CASE("agent: a signal to all of acc's processes counts once, however late its copies are", "[launch]") {
  const auto killed_after = [](std::optional<Receiver> again) {
    Job job;
    job.processes.ignores_signals(0);
    job.processes.signal_arrives(SIGTERM, 10ms, Receiver::guardian);
    job.processes.signal_arrives(SIGTERM, 5s, Receiver::supervisor);
    job.processes.signal_arrives(SIGTERM, 15s, Receiver::agent);
    if (again) job.processes.signal_arrives(SIGTERM, 20s, *again);
    job.run(plan_of(1));
    return job.processes.elapsed();
  };
  CHECK(killed_after({}) >= 30s);
  CHECK(killed_after(Receiver::agent) < 21s);
  CHECK(killed_after(Receiver::supervisor) < 21s);
}

TEST_CASE("agent: what acc stop asks for is no copy of a signal, nor has it copies", "[launch]") {
  Job first;
  first.processes.ignores_signals(0);
  first.processes.signal_arrives(SIGTERM, 10ms);
  first.processes.stop_is_asked(false, 5s);
  first.run(plan_of(1));
  CHECK(first.processes.elapsed() < 6s);
  Job last;
  last.processes.ignores_signals(0);
  last.processes.stop_is_asked(false, 10ms);
  last.processes.signal_arrives(SIGTERM, 5s);
  last.run(plan_of(1));
  CHECK(last.processes.elapsed() < 6s);
}

TEST_CASE("agent: what acc stop asks for ends the job on all nodes, a signal ends this one", "[launch]") {
  Job asked;
  asked.processes.stop_is_asked(false, 10ms);
  CHECK(asked.run(plan_of(1)).exit_code == 143);
  CHECK(asked.rendezvous.stopped_with == 143);
  Job signalled;
  signalled.processes.signal_arrives(SIGTERM, 10ms);
  CHECK(signalled.run(plan_of(1)).exit_code == 143);
  CHECK_FALSE(signalled.rendezvous.stopped_with);
}

TEST_CASE("agent: an engine's repeated SIGTERM counts once, however late it is, Ctrl-C does not",
          "[launch]") {
  const auto killed_after = [](int first, int second, std::chrono::milliseconds later) {
    Job job;
    job.processes.ignores_signals(0);
    job.processes.signal_arrives(first, 10ms);
    job.processes.signal_arrives(second, 10ms + later);
    LaunchPlan plan = plan_of(1);
    plan.repeated_sigterm = 24h;
    job.run(plan);
    return job.processes.elapsed();
  };
  CHECK(killed_after(SIGTERM, SIGTERM, 5ms) >= 30s);
  CHECK(killed_after(SIGTERM, SIGTERM, 20s) >= 30s);
  CHECK(killed_after(SIGINT, SIGINT, 500ms) < 1s);
  CHECK(killed_after(SIGTERM, SIGINT, 500ms) < 1s);
}

namespace {

LaunchPlan preemptible(int workers, int max_restarts = 0) {
  LaunchPlan plan = plan_of(workers, max_restarts);
  plan.notice_signals = {SIGUSR1, SIGUSR2};
  plan.requeue_on_preemption = true;
  return plan;
}

}  // namespace

TEST_CASE("agent: a notice reaches the workers that handle it, and is published once", "[launch]") {
  Job job;
  job.processes.has_no_handler(1);
  // Slurm signals the supervisor, the guardian and the agent, and then the other node does.
  job.processes.signal_arrives(SIGUSR1, 10ms, Receiver::agent);
  job.processes.signal_arrives(SIGUSR1, 11ms, Receiver::supervisor);
  job.processes.signal_arrives(SIGUSR1, 4s, Receiver::guardian);
  job.processes.other_nodes_send(EndNotice{SIGUSR1, "node1"}, 5s);
  job.processes.will_end(0, Exited{0}, 6s);
  job.processes.will_end(1, Exited{0}, 6s);
  LaunchPlan plan = preemptible(2);
  SECTION("without --requeue-on-preemption the exit code is that of the workers") {
    plan.requeue_on_preemption = false;
    CHECK(job.run(plan).exit_code == 0);
  }
  SECTION("with it the job asks for its requeue") {
    CHECK(job.run(plan).exit_code == kRequeueCode);
  }
  CHECK(job.processes.signals() == Signals{{0, SIGUSR1}});
  CHECK(job.rendezvous.announced == std::vector<int>{SIGUSR1});
  const auto passed_on = job.reporter.all<SignalPassedOn>();
  REQUIRE(passed_on.size() == 1);
  CHECK(passed_on[0].ranks == std::vector<int>{0});
  CHECK(passed_on[0].ranks_without_handler == std::vector<int>{1});
  CHECK(job.processes.started()[0].ignored_signals == std::vector<int>{SIGUSR1, SIGUSR2});
}

TEST_CASE("agent: a notice reaches a worker that has its handler later", "[launch]") {
  Job job;
  job.processes.has_no_handler(1, 3s);
  job.processes.signal_arrives(SIGUSR1, 10ms);
  job.processes.will_end(0, Exited{0}, 10s);
  job.processes.will_end(1, Exited{0}, 10s);
  CHECK(job.run(preemptible(2)).exit_code == kRequeueCode);
  CHECK(job.processes.signals() == Signals{{0, SIGUSR1}, {1, SIGUSR1}});
  const auto passed_on = job.reporter.all<SignalPassedOn>();
  REQUIRE(passed_on.size() == 2);
  CHECK(passed_on[0].ranks_without_handler == std::vector<int>{1});
  CHECK(passed_on[1].ranks == std::vector<int>{1});
  CHECK(passed_on[1].ranks_without_handler.empty());
}

TEST_CASE("agent: a notice reaches such a worker within a second, whatever else happens", "[launch]") {
  Job job;
  job.processes.has_no_handler(0, 1s);
  job.processes.signal_arrives(SIGUSR1, 10ms);
  for (const auto time : {500ms, 1000ms, 1500ms, 2000ms, 2500ms})
    job.processes.other_nodes_send(Notice{"a node is silent"}, time);
  job.processes.will_end(0, Exited{0}, 2100ms);
  job.run(preemptible(1));
  CHECK(job.processes.signals() == Signals{{0, SIGUSR1}});
}

TEST_CASE("agent: a notice reaches workers that are started after it", "[launch]") {
  Job job;
  job.processes.signal_arrives(SIGUSR1);
  SECTION("in the same attempt") {}
  SECTION("in a later attempt") {
    job.processes.has_no_handler(0, 3s);
    job.processes.will_end_in(0, 0, Exited{1});
  }
  job.processes.will_end(0, Exited{0}, 10s);
  CHECK(job.run(preemptible(1, 1)).exit_code == kRequeueCode);
  CHECK(job.processes.signals() == Signals{{0, SIGUSR1}});
  const auto passed_on = job.reporter.all<SignalPassedOn>();
  REQUIRE(passed_on.size() == 2);
  CHECK(passed_on[1].ranks == std::vector<int>{0});
}

TEST_CASE("agent: a notice of another node is not published again; a later one is a new one", "[launch]") {
  Job job;
  job.processes.other_nodes_send(EndNotice{SIGUSR1, "node1"}, 10ms);
  SECTION("from elsewhere") {
    job.processes.signal_arrives(SIGUSR1, 15s);
  }
  SECTION("from there again") {
    job.processes.other_nodes_send(EndNotice{SIGUSR1, "node1"}, 3s);
  }
  job.processes.will_end(0, Exited{0}, 20s);
  CHECK(job.run(preemptible(1)).exit_code == kRequeueCode);
  CHECK(job.processes.signals() == Signals{{0, SIGUSR1}, {0, SIGUSR1}});
  CHECK(job.rendezvous.announced.size() == (job.reporter.all<SignalPassedOn>().at(1).host.empty() ? 1 : 0));
  CHECK(job.reporter.all<SignalPassedOn>().at(0).host == "node1");
}

TEST_CASE("agent: a worker that a notice has ended is not a failure", "[launch]") {
  Job job;
  job.processes.will_end(0, Signaled{SIGUSR1}, 1s);
  job.processes.will_end(1, Exited{0}, 5s);
  CHECK(job.run(preemptible(2)).exit_code == kRequeueCode);
  CHECK(job.processes.signals() == Signals{{1, SIGUSR1}});  // the other one is told, not stopped
  Job other;
  other.processes.will_end(0, Signaled{SIGUSR1}, 1s);
  CHECK(other.run(plan_of(2)).exit_code == 128 + SIGUSR1);
}

TEST_CASE("agent: without a requeue a worker that ends by a signal nobody sent to the job has failed",
          "[launch]") {
  LaunchPlan plan = preemptible(2);
  plan.requeue_on_preemption = false;
  Job job;
  job.processes.will_end(0, Signaled{SIGUSR1}, 1s);
  SECTION("it is restarted, and the job ends with its code") {
    plan.max_restarts = 1;
    CHECK(job.run(plan).exit_code == 128 + SIGUSR1);
    CHECK(job.reporter.all<Restarting>().size() == 1);
  }
  SECTION("after a notice it obeyed") {
    job.processes.signal_arrives(SIGUSR1, 10ms);
    job.processes.will_end(1, Exited{0}, 2s);
    CHECK(job.run(plan).exit_code == 0);
  }
}

TEST_CASE("agent: a preempted job that ends in time asks for its requeue", "[launch]") {
  Job job;
  SECTION("by SIGTERM") {
    job.processes.signal_arrives(SIGTERM, 10ms);
    CHECK(job.run(preemptible(2)).exit_code == kRequeueCode);
    CHECK(job.rendezvous.left_with == kRequeueCode);
  }
  SECTION("but not if a worker had to be killed") {
    job.processes.ignores_signals(1);
    job.processes.signal_arrives(SIGTERM, 10ms);
    CHECK(job.run(preemptible(2)).exit_code == 143);
    CHECK(job.rendezvous.left_with == 143);
  }
  SECTION("nor if a worker fails") {
    job.processes.signal_arrives(SIGUSR1, 10ms);
    job.processes.will_end(0, Exited{7}, 1s);
    CHECK(job.run(preemptible(2)).exit_code == 7);
  }
  SECTION("nor if a person ends it") {
    job.processes.signal_arrives(SIGINT, 10ms);
    CHECK(job.run(preemptible(2)).exit_code == 130);
  }
  SECTION("nor if the job had failed on another node before") {
    job.rendezvous.num_machines = 2;
    job.processes.other_nodes_send(RoundOver{.text = "node 1 failed", .exit_code = 7}, 5ms);
    job.processes.ignores_signals(1);
    job.processes.will_end(1, Exited{0}, 1s);
    job.processes.signal_arrives(SIGTERM, 500ms);
    CHECK(job.run(preemptible(2)).exit_code == 143);
  }
  SECTION("nor if a person asks for it by acc stop, also after a notice") {
    if (GENERATE(false, true)) job.processes.signal_arrives(SIGUSR1, 5ms);
    job.processes.stop_is_asked(false, 10ms);
    CHECK(job.run(preemptible(2)).exit_code == 143);
  }
  SECTION("nor without a preemption") {
    job.processes.will_end(0, Exited{0}, 1s);
    CHECK(job.run(preemptible(1)).exit_code == 0);
  }
}

TEST_CASE("agent: without an engine USR1 is the program's own", "[launch]") {
  Job job;
  job.processes.has_no_handler(1);
  job.processes.signal_arrives(SIGUSR1, 10ms);
  job.processes.will_end(0, Exited{0}, 1s);
  job.processes.will_end(1, Exited{0}, 1s);
  CHECK(job.run(plan_of(2)).exit_code == 0);
  CHECK(job.processes.signals() == Signals{{0, SIGUSR1}, {1, SIGUSR1}});
  CHECK(job.rendezvous.announced.empty());
  CHECK(job.reporter.all<SignalPassedOn>().empty());
  CHECK(job.processes.started()[0].ignored_signals.empty());
}

TEST_CASE("agent: workers ignore what acc was started to ignore", "[launch]") {
  Job job;
  job.processes.will_end(0, Exited{0}, 1s);
  LaunchPlan plan = plan_of(1);
  plan.ignored_signals = {SIGUSR2};
  CHECK(job.run(plan).exit_code == 0);
  CHECK(job.processes.started()[0].ignored_signals == std::vector<int>{SIGUSR2});
}

TEST_CASE("agent: other signals are only forwarded to the workers", "[launch]") {
  const int signal = GENERATE(SIGUSR1, SIGUSR2, SIGCONT, SIGWINCH);
  Job job;
  job.processes.signal_arrives(signal, 10ms);
  job.processes.will_end(0, Exited{0}, 1s);
  job.processes.will_end(1, Exited{0}, 2s);
  CHECK(job.run(plan_of(2)).exit_code == 0);
  CHECK(job.processes.signals() == Signals{{0, signal}, {1, signal}});
}

TEST_CASE("agent: workers that a stop signal ended first are not a failure", "[launch]") {
  Job job;
  job.processes.will_end(0, Signaled{SIGTERM});
  job.processes.ignores_signals(1);
  job.processes.signal_arrives(SIGTERM, 5ms);
  const LaunchReport report = job.run(plan_of(2));
  CHECK(report.exit_code == 143);
  CHECK_FALSE(report.first_failure);
}

TEST_CASE("agent: without a supervisor everything is killed at once and silently", "[launch]") {
  Job job;
  job.processes.supervisor_is_lost(10ms);
  job.processes.will_leave_orphans(1);
  const LaunchReport report = job.run(plan_of(2, 3));
  CHECK(report.exit_code == 137);
  CHECK(job.processes.signals() == Signals{{0, SIGKILL}, {1, SIGKILL}});
  CHECK(job.processes.orphan_signals() == std::vector<int>{SIGKILL});
  CHECK(job.processes.started().size() == 2);
  CHECK(job.reporter.all<Killed>().empty());
}

TEST_CASE("agent: orphans get SIGTERM, then SIGKILL", "[launch]") {
  Job job;
  job.processes.will_end(0, Exited{0});
  SECTION("it obeys") {
    job.processes.will_leave_orphans(3);
    CHECK(job.run(plan_of(1)).exit_code == 0);
    CHECK(job.processes.orphan_signals() == std::vector<int>{SIGTERM});
    CHECK(job.processes.elapsed() < 1s);
  }
  SECTION("it does not") {
    job.processes.will_leave_orphans(3, true);
    CHECK(job.run(plan_of(1)).exit_code == 0);
    CHECK(job.processes.orphan_signals() == std::vector<int>{SIGTERM, SIGKILL});
    CHECK(job.processes.elapsed() >= 5s);
    CHECK(job.processes.elapsed() < 6s);
  }
  SECTION("the grace of workers is shorter") {
    job.processes.will_leave_orphans(3, true);
    LaunchPlan plan = plan_of(1);
    plan.shutdown_timeout = 20ms;
    job.run(plan);
    CHECK(job.processes.elapsed() < 1s);
  }
}

TEST_CASE("agent: a worker that cannot be killed is waited for, and named once", "[launch]") {
  Job job;
  job.processes.will_end(0, Exited{3});
  job.processes.ignores_signals(1);
  job.processes.is_stuck(1, 100s);
  CHECK(job.run(plan_of(2)).exit_code == 3);
  CHECK(job.processes.elapsed() >= 100s);
  REQUIRE(job.reporter.all<Warning>().size() == 1);
  CHECK(job.reporter.all<Warning>()[0].text ==
        "rank 1 cannot be killed: it waits in the kernel (wait_on_page)");
}

TEST_CASE("agent: a worker that cannot be started stops the others and is an error", "[launch]") {
  Job job;
  job.processes.cannot_start(2);
  CHECK(error_of([&] { job.run(plan_of(3)); }) == "/bin/train: cannot be started");
  CHECK(job.processes.running() == 0);
  CHECK(job.processes.signals() == Signals{{0, SIGTERM}, {1, SIGTERM}});
}

TEST_CASE("agent: where workers cannot be started again, the failure before is the job's", "[launch]") {
  Job job;
  job.processes.will_end_in(0, 0, Exited{3});
  job.rendezvous.on_round = [&] {
    if (job.rendezvous.rounds == 1) job.processes.cannot_start(0);
  };
  const LaunchReport report = job.run(plan_of(1, 3));
  REQUIRE(report.first_failure);
  CHECK(report.first_failure->attempt == 0);
  CHECK(report.exit_code == 3);
  CHECK(report.own_failure);
  REQUIRE(job.reporter.all<Warning>().size() == 1);
  CHECK(job.reporter.all<Warning>()[0].text ==
        "the workers cannot be started again: /bin/train: cannot be started");
}

namespace {

LaunchPlan plan_of_nodes(int min, int max, int max_restarts = 0) {
  LaunchPlan plan = plan_of(1, max_restarts);
  plan.rendezvous.min_nodes = min;
  plan.rendezvous.max_nodes = max;
  return plan;
}

}  // namespace

TEST_CASE("agent: the others hear why a node cannot start its workers", "[launch]") {
  Job job;
  job.processes.cannot_start(0);
  SECTION("a job that needs all its nodes ends at once") {
    CHECK_THROWS_AS(job.run(plan_of_nodes(2, 2, 3)), Error);
    CHECK(job.rendezvous.failures ==
          std::vector<RoundOver>{{.text = "node localhost: /bin/train: cannot be started", .exit_code = 2}});
  }
  SECTION("another one goes on without this node") {
    CHECK_THROWS_AS(job.run(plan_of_nodes(1, 2, 3)), Error);
    CHECK(job.rendezvous.failures.empty());
    CHECK(job.rendezvous.left_because == "/bin/train: cannot be started");
    CHECK(job.rendezvous.left_with == 2);
  }
  CHECK(job.processes.elapsed() == 0ms);
}

TEST_CASE("agent: a node that cannot start its workers again tells the failure before, too", "[launch]") {
  Job job;
  job.processes.will_end_in(0, 0, Exited{3});
  job.rendezvous.on_round = [&] {
    if (job.rendezvous.rounds == 1) job.processes.cannot_start(0);
  };
  CHECK(job.run(plan_of_nodes(2, 2, 3)).exit_code == 3);
  REQUIRE(job.rendezvous.failures.size() == 2);
  const RoundOver& end = job.rendezvous.failures[1];
  CHECK_FALSE(end.restart);
  CHECK(end.failure == job.rendezvous.failures[0].failure);
  CHECK(end.exit_code == 3);
  CHECK(end.reason == "node localhost: /bin/train: cannot be started");
}

TEST_CASE("agent: a job that runs starts again without log files where there is no room for them",
          "[launch]") {
  const TemporaryFolder folder;
  LaunchPlan plan = plan_of(1, 1);
  plan.output.no_logs = false;
  plan.output.log_dir = folder.path();
  const LogFolder logs = LogFolder::make(plan);
  Job job;
  job.processes.will_end_in(0, 0, Exited{3});
  job.processes.will_end(0, Exited{0}, 1s);
  job.rendezvous.on_round = [&] {
    if (job.rendezvous.rounds == 0) return;
    std::filesystem::remove_all(logs.run_folder());
    folder.write(logs.run_folder().filename(), "a file");
  };
  CHECK(job.run(plan, logs).exit_code == 0);
  REQUIRE(job.processes.started().size() == 2);
  CHECK(job.processes.started()[0].folder == logs.attempt(0) / "0");
  CHECK(job.processes.started()[1].folder.empty());
  CHECK(job.processes.started()[1].environment.get("TORCHELASTIC_ERROR_FILE").empty());
  REQUIRE(job.reporter.all<Warning>().size() == 1);
  CHECK(job.reporter.all<Warning>()[0].text == logs.attempt(1).string() +
                                                   ": cannot create the log folder: Not a directory; "
                                                   "attempt 1 has no log files");
}

TEST_CASE("agent: workers get their ranks in the job", "[launch]") {
  Job job;
  job.processes.will_end(0, Exited{0});
  job.processes.will_end(1, Exited{0});
  LaunchPlan plan = plan_of(2);
  plan.inherited = Environment{{"RANK", "17"}, {"HOME", "/h"}};
  plan.environment = Environment{{"HOME", "/other"}};
  plan.output.line_prefix_template = "<${role_name}:${rank}:${local_rank}>";
  plan.output.tee.of_rank = {{1, Streams::err}};
  job.run(plan);
  REQUIRE(job.processes.started().size() == 2);
  const WorkerStart& second = job.processes.started()[1];
  CHECK(second.arguments == std::vector<std::string>{"train", "--rank=1"});
  CHECK(second.environment.get("RANK") == "1");
  CHECK(second.environment.get("HOME") == "/other");
  CHECK(second.environment.get("MASTER_PORT") == "4321");
  CHECK(second.environment.find("TORCHELASTIC_ERROR_FILE") == "");
  CHECK(second.line_prefix == "<default:1:1>");
  CHECK(job.processes.started()[0].line_prefix.empty());
  CHECK(second.folder.empty());
}

TEST_CASE("agent: the lines of a task of an engine name its rank on the node", "[launch]") {
  Job job;
  job.processes.will_end(0, Exited{0});
  LaunchPlan plan = plan_of(1);
  plan.output.first_local_rank = 3;
  plan.output.tee.default_streams = Streams::both;
  job.run(plan);
  REQUIRE(job.processes.started().size() == 1);
  CHECK(job.processes.started()[0].line_prefix == "[default3]:");
}

TEST_CASE("agent: a plain process gets no rank", "[launch]") {
  Job job;
  job.processes.will_end(0, Exited{0});
  LaunchPlan plan = plan_of(1);
  plan.sets_ranks = false;
  job.run(plan);
  CHECK(job.processes.started()[0].environment.empty());
}

namespace {

LaunchPlan plan_with_logs(int workers, const TemporaryFolder& folder) {
  LaunchPlan plan = plan_of(workers);
  plan.output.no_logs = false;
  plan.output.log_dir = folder.path();
  return plan;
}

}  // namespace

TEST_CASE("agent: the report has the error file and the end of stderr", "[launch]") {
  const TemporaryFolder folder;
  const LaunchPlan plan = plan_with_logs(2, folder);
  const LogFolder logs = LogFolder::make(plan);
  Job job;
  job.processes.writes_to_stderr(1, "boom\n");
  job.processes.before_start = [&] {
    const auto file = logs.attempt(0) / "1" / "error.json";
    std::ofstream(file) << R"({"message": "it broke"})";
  };
  job.processes.will_end(1, Exited{1});
  const LaunchReport report = job.run(plan, logs);
  CHECK(job.processes.started()[1].environment.get("TORCHELASTIC_ERROR_FILE") ==
        (logs.attempt(0) / "1" / "error.json").string());
  REQUIRE(report.first_failure);
  REQUIRE(report.first_failure->error_file);
  CHECK(report.first_failure->error_file->message == "it broke");
  CHECK(report.first_failure->stderr_tail == "boom\n");
}

TEST_CASE("agent: a worker that failed first and ended later keeps its own exit code", "[launch]") {
  const TemporaryFolder folder;
  const LaunchPlan plan = plan_with_logs(2, folder);
  const LogFolder logs = LogFolder::make(plan);
  Job job;
  job.processes.before_start = [&] {
    const auto write = [&](const char* rank, const char* second) {
      std::ofstream(logs.attempt(0) / rank / "error.json")
          << R"({"message": {"message": "it broke", "extraInfo": {"timestamp": ")" << second << "\"}}}";
    };
    write("0", "1700000002");
    write("1", "1700000001");
  };
  job.processes.will_end(0, Exited{3});
  job.processes.ignores_signals(1);
  job.processes.will_end(1, Exited{42}, 1s);
  const LaunchReport report = job.run(plan, logs);
  REQUIRE(report.first_failure);
  CHECK(report.first_failure->rank == 1);
  CHECK(report.exit_code == 42);
}

TEST_CASE("agent: a worker that is about to say why it fails is not stopped for those that lost it",
          "[launch]") {
  Job job;
  job.processes.will_end(0, Exited{1});
  job.processes.writes_to_stderr(0, "RuntimeError: Connection closed by peer [127.0.0.1]:4242\n");
  SECTION("so it is the cause") {
    job.processes.will_end(1, Exited{42}, 1s);
    const LaunchReport report = job.run(plan_of(3));
    REQUIRE(report.first_failure);
    CHECK(report.first_failure->rank == 1);
    CHECK(report.exit_code == 42);
    CHECK(report.stopped_ranks == std::vector<int>{2});
    CHECK(job.processes.elapsed() < 1100ms);
  }
  SECTION("for two seconds at most") {
    const LaunchReport report = job.run(plan_of(3));
    CHECK(report.exit_code == 1);
    CHECK(job.processes.signals() == Signals{{1, SIGTERM}, {2, SIGTERM}});
    CHECK(job.processes.elapsed() < 2100ms);
  }
  SECTION("and no longer than another runs") {
    job.processes.will_end(1, Exited{0}, 500ms);
    CHECK(job.run(plan_of(2)).exit_code == 1);
    CHECK(job.processes.elapsed() < 600ms);
  }
  SECTION("unless the job is asked to end") {
    job.processes.signal_arrives(SIGTERM, 500ms);
    CHECK(job.run(plan_of(2)).stop_signal == SIGTERM);
    CHECK(job.processes.elapsed() < 600ms);
  }
}

TEST_CASE("agent: for a cause that has ended, or is elsewhere, nobody waits here", "[launch]") {
  const TemporaryFolder folder;
  const LaunchPlan plan = plan_with_logs(3, folder);
  const LogFolder logs = LogFolder::make(plan);
  const auto* lost_ranks = GENERATE("[1]", "[7]");
  Job job;
  job.processes.before_start = [&] {
    std::ofstream(logs.attempt(0) / "0" / "error.json")
        << R"({"message": {"message": "lost", "extraInfo": {"consequence": true, "lost_ranks": )"
        << lost_ranks << "}}}";
  };
  job.processes.will_end(1, Exited{0});
  job.processes.will_end(0, Exited{1}, 1s);
  CHECK(job.run(plan, logs).exit_code == 1);
  CHECK(job.processes.elapsed() < 1100ms);
  CHECK(job.processes.signals() == Signals{{2, SIGTERM}});
}

TEST_CASE("agent: a cause is waited for although another worker lost one that has ended", "[launch]") {
  const TemporaryFolder folder;
  const LaunchPlan plan = plan_with_logs(3, folder);
  const LogFolder logs = LogFolder::make(plan);
  Job job;
  job.processes.before_start = [&] {
    const auto write = [&](const char* rank, const char* lost) {
      std::ofstream(logs.attempt(0) / rank / "error.json")
          << R"({"message": {"message": "lost", "extraInfo": {"consequence": true, "lost_ranks": [)" << lost
          << "]}}}";
    };
    write("0", "2");
    write("1", "0");
  };
  job.processes.will_end(0, Exited{1});
  job.processes.will_end(1, Exited{1}, 200ms);
  job.processes.will_end(2, Exited{42}, 1s);
  CHECK(job.run(plan, logs).exit_code == 42);
  CHECK(job.processes.signals().empty());
}

TEST_CASE("agent: an OOM kill is reported only if the kernel counted one", "[launch]") {
  const TemporaryFolder folder;
  const CgroupPaths cgroups = {folder.write("membership", "0::/job\n"), folder.path() / "fs"};
  folder.write("fs/job/memory.events", "oom 0\noom_kill 4\n");
  Job job;
  job.processes.will_end(0, Signaled{SIGKILL});
  SECTION("it counted one") {
    job.processes.before_start = [&] { folder.write("fs/job/memory.events", "oom 1\noom_kill 5\n"); };
    CHECK(job.run(plan_of(1), {}, cgroups).first_failure->out_of_memory);
  }
  SECTION("it counted none") {
    CHECK_FALSE(job.run(plan_of(1), {}, cgroups).first_failure->out_of_memory);
  }
}

TEST_CASE("agent: a failure has the GPU faults of the kernel log since the job's start", "[launch]") {
  const TemporaryFolder folder;
  const std::string before = "NVRM: Xid (PCI:0000:1c:00): 48, DBE\n";
  const KernelLogPaths log = {.driver = folder.path(), .logs = {folder.write("kmsg", before)}};
  Job job;
  job.processes.will_end(0, Exited{1});
  LaunchPlan plan = plan_of(1, 1);
  // Of the first attempt: the second one fails because of it, too.
  job.processes.before_start = [&, started = 0]() mutable {
    if (started++ == 0)
      folder.write("kmsg", before + "NVRM: Xid (PCI:0000:3b:00): 79, GPU has fallen off the bus.\n");
  };
  SECTION("in each attempt") {
    const LaunchReport report = job.run(plan, {}, {}, log);
    CHECK(report.restarts == 1);
    CHECK(report.first_failure->xids == std::vector<Xid>{{79, "0000:3b:00"}});
  }
  SECTION("unless the job is on the CPU") {
    plan.environment.set("ACCELERATE_USE_CPU", "True");
    CHECK_FALSE(job.run(plan, {}, {}, log).first_failure->xids);
  }
}

TEST_CASE("agent: a rank with a wrapper that no worker has is told once", "[launch]") {
  Job job;
  job.processes.will_end(0, Exited{1});
  LaunchPlan plan = plan_of(1, 1);
  plan.wraps = {{.words = {"nice"}, .program = "/bin/nice"},
                {.rank = 0, .words = {"gdb"}, .program = "/bin/gdb"},
                {.rank = 1, .words = {"gdb"}, .program = "/bin/gdb"}};
  CHECK(job.run(plan).restarts == 1);
  REQUIRE(job.reporter.all<Warning>().size() == 1);
  CHECK(job.reporter.all<Warning>()[0].text == "--wrap-rank: there is no rank 1: the job has 1 worker");
}

TEST_CASE("agent: a reader that does not read delays the end until a signal", "[launch]") {
  Job job;
  job.processes.will_end(0, Exited{0});
  job.processes.has_slow_reader();
  job.processes.signal_arrives(SIGINT, 100s);
  CHECK(job.run(plan_of(1)).exit_code == 130);
  CHECK(job.processes.elapsed() == 100s);
  CHECK(job.reporter.all<Warning>().size() == 1);
}

TEST_CASE("agent: a stopped job waits for a reader as long as for its workers", "[launch]") {
  Job job;
  job.processes.has_slow_reader();
  job.processes.signal_arrives(SIGTERM, 10s);
  SECTION("until the grace period is over") {
    CHECK(job.run(plan_of(1)).exit_code == 143);
    CHECK(job.processes.elapsed() == 40s);
  }
  SECTION("for a second more where workers have taken all of it") {
    job.processes.ignores_signals(0);
    CHECK(job.run(plan_of(1)).exit_code == 143);
    CHECK(job.processes.elapsed() == 41s);
  }
  SECTION("and no longer after a second signal") {
    job.processes.signal_arrives(SIGTERM, 12s);
    CHECK(job.run(plan_of(1)).exit_code == 143);
    CHECK(job.processes.elapsed() == 12s);
  }
  CHECK(job.reporter.all<Warning>().size() == 1);
}

TEST_CASE("agent: a stopped job waits longer for a reader that is still reading", "[launch]") {
  Job job;
  job.processes.has_slow_reader();
  job.processes.signal_arrives(SIGTERM, 10s);
  const auto read_until = [&](std::chrono::milliseconds end) {
    job.processes.unread = [&job, end] {
      return static_cast<std::uint64_t>(1'000'000 - std::min(job.processes.elapsed(), end).count());
    };
  };
  SECTION("until it has read nothing for a second") {
    read_until(45'500ms);
    CHECK(job.run(plan_of(1)).exit_code == 143);
    CHECK(job.processes.elapsed() == 47s);
  }
  SECTION("but at most as long as for the workers once more") {
    read_until(1000s);
    CHECK(job.run(plan_of(1)).exit_code == 143);
    CHECK(job.processes.elapsed() == 70s);
  }
  CHECK(job.reporter.all<Warning>().size() == 1);
}

TEST_CASE("agent: several nodes: a reader is waited for no longer where another node was asked to end",
          "[launch]") {
  Job job;
  job.rendezvous.num_machines = 2;
  job.processes.has_slow_reader();
  LaunchPlan plan = plan_of(1);
  SECTION("by a signal") {
    job.processes.other_nodes_send(RoundOver{.text = "node 1 was asked to end by SIGTERM", .exit_code = 143},
                                   10s);
    CHECK(job.run(plan).exit_code == 143);
    CHECK(job.processes.elapsed() == 40s);
  }
  SECTION("by a signal after a notice of the job's end") {
    plan.notice_signals = {SIGUSR1};
    plan.requeue_on_preemption = true;
    job.processes.other_nodes_send(EndNotice{.signal = SIGUSR1, .host = "node1"}, 1s);
    job.processes.other_nodes_send(RoundOver{.text = "node 1 was asked to end", .exit_code = 75}, 10s);
    CHECK(job.run(plan).exit_code == 75);
    CHECK(job.processes.elapsed() == 40s);
  }
  SECTION("but until a signal after a failure") {
    job.processes.other_nodes_send(RoundOver{.text = "node 1 failed", .exit_code = 1}, 10s);
    job.processes.signal_arrives(SIGTERM, 100s);
    job.run(plan);
    CHECK(job.processes.elapsed() == 100s);
  }
  CHECK(job.reporter.all<Warning>().size() == 1);
}

TEST_CASE("agent: several nodes: another node's failure stops the workers here, and is reported",
          "[launch]") {
  Job job;
  job.processes.before_start = [&, called = false]() mutable {
    if (std::exchange(called, true)) return;
    const WorkerFailure theirs = {.rank = 7, .host = "node1", .status = Exited{42}};
    job.rendezvous.emit(RoundOver{.failure = to_json_text(theirs), .exit_code = 42});
  };
  const LaunchReport report = job.run(plan_of(2));
  CHECK(report.exit_code == 42);
  REQUIRE(report.first_failure);
  CHECK(report.first_failure->host == "node1");
  CHECK(report.first_failure->rank == 7);
  CHECK(job.processes.running() == 0);
  CHECK(job.rendezvous.failures.empty());  // a stopped worker did not fail
}

TEST_CASE("agent: several nodes: a node that only lost a peer waits for the cause", "[launch]") {
  Job job;
  job.rendezvous.num_machines = 2;
  job.processes.will_end(0, Exited{1});
  job.processes.writes_to_stderr(0, "RuntimeError: Connection closed by peer [10.0.0.2]:4242\n");
  SECTION("and reports that") {
    const WorkerFailure theirs = {.rank = 1, .host = "node1", .status = Exited{42}};
    job.processes.other_nodes_send(RoundOver{.failure = to_json_text(theirs), .exit_code = 42}, 1s);
    const LaunchReport report = job.run(plan_of(1));
    CHECK(report.exit_code == 42);
    REQUIRE(report.first_failure);
    CHECK(report.first_failure->rank == 1);
    CHECK(job.rendezvous.failures.empty());
    CHECK(job.processes.elapsed() == 1s);
  }
  SECTION("for two seconds at most") {
    CHECK(job.run(plan_of(1)).exit_code == 1);
    CHECK(job.rendezvous.failures.size() == 1);
    CHECK(job.processes.elapsed() < 2100ms);
  }
  SECTION("unless it is asked to end") {
    job.processes.signal_arrives(SIGTERM, 500ms);
    CHECK(job.run(plan_of(1)).exit_code == 143);
    CHECK(job.processes.elapsed() < 600ms);
  }
}

TEST_CASE("agent: a failure with a cause of its own is reported to the other nodes at once", "[launch]") {
  Job job;
  job.rendezvous.num_machines = 2;
  job.processes.will_end(0, Exited{3});
  CHECK(job.run(plan_of(1)).exit_code == 3);
  CHECK(job.processes.elapsed() < 100ms);
}

TEST_CASE("agent: several nodes: all restart together, which counts once", "[launch]") {
  Job job;
  job.processes.will_end_in(0, 0, Exited{3});
  job.processes.will_end_in(1, 0, Exited{0});
  const LaunchReport report = job.run(plan_of(1, 2));
  CHECK(report.exit_code == 0);
  CHECK(report.restarts == 1);
  CHECK(job.processes.started().back().environment.get("TORCHELASTIC_RESTART_COUNT") == "1");
}

TEST_CASE("agent: several nodes: the group's decision overrides this node's", "[launch]") {
  Job job;
  job.processes.will_end(0, Exited{3});
  job.rendezvous.others = RoundOver{.text = "node 1 was lost", .exit_code = 75};
  const LaunchReport report = job.run(plan_of(1, 5));
  CHECK(job.rendezvous.failures.at(0).restart);
  CHECK(report.exit_code == 75);
  REQUIRE(job.reporter.all<GroupChanged>().size() == 1);
  CHECK(job.reporter.all<GroupChanged>()[0].text == "node 1 was lost");
}

TEST_CASE("agent: several nodes: a node that succeeded restarts with the group", "[launch]") {
  Job job;
  job.processes.will_end(0, Exited{0});
  job.rendezvous.others = RoundOver{.restart = true, .text = "a node joins"};
  job.rendezvous.on_round = [&] {
    if (job.rendezvous.rounds == 1) job.rendezvous.others.reset();
  };
  CHECK(job.run(plan_of(1)).exit_code == 0);
  CHECK(job.rendezvous.rounds == 2);
  CHECK(job.rendezvous.finished == 2);
}

TEST_CASE("agent: several nodes: a signal ends the wait for the others", "[launch]") {
  Job job;
  job.rendezvous.answers = false;
  job.processes.signal_arrives(SIGTERM, 3s);
  CHECK(job.run(plan_of(2)).exit_code == 143);
  CHECK(job.processes.started().empty());
  CHECK(job.rendezvous.left_because == "it was asked to end by SIGTERM");
  CHECK(job.rendezvous.left_with == 143);
}

TEST_CASE("agent: several nodes: too few nodes in time", "[launch]") {
  Job job;
  job.rendezvous.answers = false;
  job.rendezvous.on_round = [&] {
    job.rendezvous.emit(RoundOver{.text = "1 of 2 nodes are here", .exit_code = 75});
  };
  CHECK(job.run(plan_of(2)).exit_code == 75);
  CHECK(job.processes.started().empty());
}

TEST_CASE("agent: a spare ends with the job that did not need it", "[launch]") {
  Job job;
  job.rendezvous.answers = false;
  job.rendezvous.on_round = [&] { job.processes.post(NodeEvent(JobDone{})); };
  const LaunchReport report = job.run(plan_of(2));
  CHECK(report.exit_code == 0);
  CHECK(job.processes.started().empty());
  CHECK(job.reporter.all<GroupChanged>().at(0).text == "the job has succeeded without this node");
  CHECK(job.rendezvous.finished == 0);
  CHECK(job.rendezvous.left_with == 0);
}

TEST_CASE("agent: a hang is reported, and the job continues", "[launch]") {
  Job job;
  job.processes.hangs(0, 1s);
  job.processes.will_end(0, Exited{0}, 5s);
  const LaunchReport report = job.run(plan_of(1));
  CHECK(report.exit_code == 0);
  CHECK_FALSE(report.hung);
  REQUIRE(job.reporter.all<HangFound>().size() == 1);
  CHECK(job.reporter.all<HangFound>()[0].rank_states == "rank 0: asleep\n");
  REQUIRE(job.reporter.all<HangStacksFound>().size() == 1);
  CHECK(job.reporter.all<HangStacksFound>()[0].text == "  native stacks\n");
  CHECK(job.processes.signals().empty());
}

TEST_CASE("agent: a straggler is reported once it is found, unless its attempt is over", "[launch]") {
  Job job;
  const SlowSection slow{.section = acc::Section::data};
  job.processes.finds(Straggler{.attempt = 0, .rank = 1, .other = 0, .slow = slow, .host = "b"}, 1s);
  job.processes.finds(Straggler{.attempt = 7, .rank = 0, .slow = slow}, 2s);
  job.processes.will_end(0, Exited{0}, 5s);
  job.processes.will_end(1, Exited{0}, 5s);
  CHECK(job.run(plan_of(2)).exit_code == 0);
  REQUIRE(job.reporter.all<StragglerFound>().size() == 1);
  CHECK(job.reporter.all<StragglerFound>()[0].rank == 1);
  CHECK(job.reporter.all<StragglerFound>()[0].other == 0);
  CHECK(job.reporter.all<StragglerFound>()[0].slow == slow);
  CHECK(job.reporter.all<StragglerFound>()[0].host == "b");
}

TEST_CASE("agent: a node that knows only of its own ranks does not end a job that may go on elsewhere",
          "[launch]") {
  Job job;
  job.processes.finds(NodeIdle{.attempt = 0, .idle = 60s, .reason = "torchrun hosts the job"}, 1s);
  job.processes.finds(NodeIdle{.attempt = 7}, 2s);
  job.processes.will_end(0, Exited{0}, 5s);
  LaunchPlan plan = plan_of(1);
  plan.hang.action = OnHang::kill;
  CHECK(job.run(plan).exit_code == 0);
  REQUIRE(job.reporter.all<Warning>().size() == 1);
  CHECK(job.reporter.all<Warning>()[0].text ==
        "all ranks of this node have been idle for 60 s; whether those of the other nodes have is not known: "
        "torchrun hosts the job; the job goes on (acc ps --stacks shows where the ranks stand)");
}

TEST_CASE("agent: a hung job is stopped if requested", "[launch]") {
  Job job;
  job.processes.hangs(0, 1s);
  LaunchPlan plan = plan_of(2, 3);
  plan.hang.action = OnHang::kill;
  const LaunchReport report = job.run(plan);
  CHECK(report.exit_code == kHungCode);
  CHECK(report.hung);
  CHECK(report.restarts == 0);
  CHECK_FALSE(report.first_failure);
  CHECK(job.processes.signals() == Signals{{0, SIGTERM}, {1, SIGTERM}, {0, SIGCONT}, {1, SIGCONT}});
}

TEST_CASE("agent: a hang restarts the job if requested", "[launch]") {
  Job job;
  job.processes.hangs(0, 1s);
  job.processes.hangs(0, 2s);  // too late: of an attempt that is over
  job.processes.hangs(1, 3s);
  LaunchPlan plan = plan_of(1, 1);
  plan.hang.action = OnHang::restart;
  const LaunchReport report = job.run(plan);
  CHECK(report.exit_code == kHungCode);
  CHECK(report.restarts == 1);
  REQUIRE(job.reporter.all<Restarting>().size() == 1);
  CHECK_FALSE(job.reporter.all<Restarting>()[0].cause);
}

TEST_CASE("agent: a failed worker is the cause, not the hang that follows", "[launch]") {
  Job job;
  job.processes.will_end(0, Exited{3});
  job.processes.ignores_signals(1);
  job.processes.hangs(0, 2s);
  LaunchPlan plan = plan_of(2);
  plan.hang.action = OnHang::kill;
  const LaunchReport report = job.run(plan);
  CHECK(report.exit_code == 3);
  CHECK_FALSE(report.hung);
}

TEST_CASE("agent: a stop at once kills the workers", "[launch]") {
  Job job;
  job.processes.stop_is_asked(true);
  const LaunchReport report = job.run(plan_of(2));
  CHECK(report.exit_code == 128 + SIGTERM);
  CHECK(job.processes.started().empty());

  Job later;
  later.processes.stop_is_asked(false);
  CHECK(later.run(plan_of(2)).exit_code == 128 + SIGTERM);
}

TEST_CASE("agent: a wrapped rank runs its wrapper, an attached one has the terminal", "[launch]") {
  Job job;
  for (const int rank : {0, 1, 2}) job.processes.will_end(rank, Exited{0});
  LaunchPlan plan = plan_of(3);
  plan.wraps = {{.rank = 2, .words = {"gdb", "--args"}, .program = "/usr/bin/gdb"}};
  plan.attach = 2;
  job.run(plan);
  REQUIRE(job.processes.started().size() == 3);
  CHECK(job.processes.started()[0].program == "/bin/train");
  CHECK(job.processes.started()[0].input == WorkerInput::none);
  CHECK(job.processes.started()[2].program == "/usr/bin/gdb");
  CHECK(job.processes.started()[2].arguments ==
        std::vector<std::string>{"gdb", "--args", "/bin/train", "--rank=2"});
  CHECK(job.processes.started()[2].input == WorkerInput::terminal);
}

namespace {

// The checks of each attempt come to this result at once.
CheckNodes checks_find(Job& job, const NodeCheckResult& result, std::vector<int>* attempts = nullptr) {
  return [&job, result, attempts](const Round&, int attempt) {
    if (attempts != nullptr) attempts->push_back(attempt);
    job.processes.post(NodesChecked{result});
  };
}

}  // namespace

TEST_CASE("agent: workers start after the nodes were checked, in each attempt", "[launch]") {
  Job job;
  std::vector<int> attempts;
  job.check_nodes = checks_find(job, {.text = "table\n"}, &attempts);
  job.processes.before_start = [&] {
    CHECK(job.reporter.all<PreflightFinished>().size() == attempts.size());
  };
  job.processes.will_end_in(0, 0, Exited{3});
  job.processes.will_end_in(1, 0, Exited{0});
  CHECK(job.run(plan_of(1, 1)).exit_code == 0);
  CHECK(attempts == std::vector<int>{0, 1});
  CHECK(job.processes.started().size() == 2);
}

TEST_CASE("agent: no worker starts when the checks fail, and the node that knows first tells all",
          "[launch]") {
  Job job;
  job.check_nodes = checks_find(job, {.passed = false, .summary = "the preflight failed: node1: broken"});
  CHECK(job.run(plan_of(2)).exit_code == 1);
  CHECK(job.processes.started().empty());
  CHECK(job.rendezvous.failures ==
        std::vector<RoundOver>{{.text = "the preflight failed: node1: broken", .exit_code = 1}});
  REQUIRE(job.reporter.all<GroupChanged>().size() == 1);
  CHECK(job.reporter.all<GroupChanged>()[0].text == "the preflight failed: node1: broken");
}

TEST_CASE("agent: the result of the checks is shown although another node ends the job before", "[launch]") {
  Job job;
  const auto result = checks_find(job, {.passed = false, .text = "table\n"});
  job.check_nodes = [&](const Round& round, int attempt) {
    job.processes.post(NodeEvent(RoundOver{.text = "the preflight failed", .exit_code = 1}));
    result(round, attempt);
  };
  CHECK(job.run(plan_of(1)).exit_code == 1);
  CHECK(job.reporter.all<PreflightFinished>().size() == 1);
  CHECK(job.rendezvous.failures.empty());
}

TEST_CASE("agent: why the checks failed is told although another node ends the job before, without a reason",
          "[launch]") {
  Job job;
  const auto result = checks_find(job, {.passed = false, .summary = "the preflight failed: node1: broken"});
  job.check_nodes = [&](const Round& round, int attempt) {
    job.processes.post(NodeEvent(RoundOver{.text = "another node has closed the job", .exit_code = 75}));
    result(round, attempt);
  };
  CHECK(job.run(plan_of(1)).exit_code == 1);
  REQUIRE(job.reporter.all<GroupChanged>().size() == 1);
  CHECK(job.reporter.all<GroupChanged>()[0].text == "the preflight failed: node1: broken");
}

TEST_CASE("agent: a job that ends during the checks does not wait for them", "[launch]") {
  Job job;
  job.check_nodes = [](const Round&, int) {};
  job.processes.other_nodes_send(RoundOver{.text = "node 2 was lost", .exit_code = 75}, 1s);
  CHECK(job.run(plan_of(1)).exit_code == 75);
  CHECK(job.processes.elapsed() <= 4s);
}

TEST_CASE("agent: with the checks alone no worker starts, and the job succeeds", "[launch]") {
  Job job;
  job.check_nodes = checks_find(job, {});
  LaunchPlan plan = plan_of(2);
  plan.preflight = Preflight::alone;
  CHECK(job.run(plan).exit_code == 0);
  CHECK(job.processes.started().empty());
  CHECK(job.rendezvous.finished == 1);
}

TEST_CASE("agent: a signal during the checks ends the job", "[launch]") {
  Job job;
  job.check_nodes = [](const Round&, int) {};
  job.processes.signal_arrives(SIGINT, 1s);
  CHECK(job.run(plan_of(1)).exit_code == 128 + SIGINT);
  CHECK(job.processes.started().empty());
}

TEST_CASE("agent: a node that is lost during the checks leads to another round, which is checked",
          "[launch]") {
  Job job;
  std::vector<int> rounds;
  job.check_nodes = [&](const Round&, int) {
    rounds.push_back(job.rendezvous.rounds);
    if (rounds.size() == 1)
      job.processes.other_nodes_send(RoundOver{.restart = true, .text = "node 2 was lost"}, 1s);
    else
      job.processes.post(NodesChecked{});
  };
  job.processes.will_end(0, Exited{0});
  CHECK(job.run(plan_of(1)).exit_code == 0);
  CHECK(rounds == std::vector<int>{1, 2});
  CHECK(job.processes.started().size() == 1);
}

TEST_CASE("agent: what the checks of an earlier round came to does not count", "[launch]") {
  Job job;
  int checks = 0;
  job.check_nodes = [&](const Round&, int) {
    if (++checks == 1)
      job.processes.other_nodes_send(RoundOver{.restart = true, .text = "node 2 was lost"}, 1s);
    else
      job.processes.post(NodesChecked{});
  };
  // The round begins, and the result of the checks before is still pending.
  job.rendezvous.on_round = [&] {
    if (checks == 1) job.processes.post(NodesChecked{{.passed = false, .summary = "stale"}});
  };
  job.processes.will_end(0, Exited{0});
  CHECK(job.run(plan_of(1)).exit_code == 0);
  CHECK(checks == 2);
}

TEST_CASE("agent: workers start when what they are forked from is prepared", "[launch]") {
  Job job;
  job.processes.will_prepare(5s);
  job.processes.before_start = [&] { CHECK(job.processes.elapsed() >= 5s); };
  job.processes.will_end(0, Exited{0});
  LaunchPlan plan = plan_of(1);
  plan.preload = {"torch"};
  CHECK(job.run(plan).exit_code == 0);
  REQUIRE(job.processes.started().size() == 1);
  CHECK(job.processes.started()[0].preloaded);
  CHECK(job.reporter.all<Warning>().empty());
}

TEST_CASE("agent: a preparation that is refused is one warning, and workers start", "[launch]") {
  Job job;
  job.processes.will_prepare(5s, "importing torch starts 2 threads");
  job.processes.will_end_in(0, 0, Exited{3});
  job.processes.will_end_in(1, 0, Exited{0});
  CHECK(job.run(plan_of(1, 1)).exit_code == 0);
  CHECK(job.processes.started().size() == 2);
  REQUIRE(job.reporter.all<Warning>().size() == 1);
  CHECK(job.reporter.all<Warning>()[0].text ==
        "importing torch starts 2 threads: workers start without --preload");
}

TEST_CASE("agent: a signal is heard while workers are prepared", "[launch]") {
  Job job;
  job.processes.will_prepare(60s);
  job.processes.signal_arrives(SIGTERM, 1s);
  CHECK(job.run(plan_of(1)).exit_code == 143);
  CHECK(job.processes.started().empty());
  CHECK(job.processes.elapsed() < 60s);
}

TEST_CASE("agent: the nodes meet while workers are prepared", "[launch]") {
  Job job;
  job.processes.will_prepare(5s);
  job.rendezvous.on_round = [&] { CHECK(job.processes.elapsed() < 5s); };
  job.processes.will_end(0, Exited{0});
  CHECK(job.run(plan_of(1)).exit_code == 0);
}

namespace {

/// A job whose training has a state in memory, which takes `takes` to copy.
struct JobWithState : Job {
  explicit JobWithState(std::chrono::milliseconds takes = 0ms) {
    flush.begin = [this, takes](Workers workers) {
      CHECK((workers == Workers::running) == (processes.running() > 0));
      began.push_back(processes.running());
      if (processes.running() == 0) on_last_begin();
      processes.will_flush({.folder = "/runs/checkpoint-" + std::to_string(began.size())}, takes);
      return true;
    };
    flush.interrupt = [this] {
      ++interrupted;
      processes.will_flush({.problem = "was interrupted"}, 0ms);
    };
  }

  std::vector<std::string> folders() const {
    std::vector<std::string> texts;
    for (const StateFlushed& event : reporter.all<StateFlushed>())
      texts.push_back(event.result.problem.empty() ? event.result.folder.string() : event.result.problem);
    return texts;
  }

  /// How many workers ran at each begin.
  std::vector<std::size_t> began = {};
  std::function<void()> on_last_begin = [] {};
  int interrupted = 0;
};

using Texts = std::vector<std::string>;
using Counts = std::vector<std::size_t>;

}  // namespace

TEST_CASE("agent: the state in memory goes to the disk when a failure ends the job", "[launch]") {
  JobWithState job(60s);
  job.processes.will_end(0, Exited{3});
  const LaunchReport report = job.run(plan_of(2, 2));
  CHECK(report.exit_code == 3);
  CHECK(job.began == Counts{0});  // not before the last restart, and when no worker is left
  CHECK(job.folders() == Texts{"/runs/checkpoint-1"});
  CHECK(std::holds_alternative<Finished>(job.reporter.events.back()));
  CHECK(job.interrupted == 0);
  CHECK(job.reporter.all<StateFlushing>().size() == 1);
}

TEST_CASE("agent: nothing goes to the disk when the training ends well", "[launch]") {
  JobWithState job;
  job.processes.will_end_in(0, 0, Exited{3});
  job.processes.will_end_in(1, 0, Exited{0});
  CHECK(job.run(plan_of(1, 1)).exit_code == 0);
  CHECK(job.began.empty());
}

TEST_CASE("agent: a signal begins to copy the state at once, and the newest follows", "[launch]") {
  JobWithState job;
  job.processes.signal_arrives(SIGTERM, 1s);
  CHECK(job.run(plan_of(2, 2)).exit_code == 143);
  CHECK(job.began == Counts{2, 0});
  CHECK(job.folders() == Texts{"/runs/checkpoint-1", "/runs/checkpoint-2"});
  CHECK(job.reporter.all<StateFlushing>().empty());
}

TEST_CASE("agent: a notice begins to copy the state while workers run", "[launch]") {
  JobWithState job;
  job.processes.signal_arrives(SIGUSR1, 1s);
  job.processes.will_end(0, Exited{0}, 5s);
  LaunchPlan plan = plan_of(1);
  plan.notice_signals = {SIGUSR1};
  CHECK(job.run(plan).exit_code == 0);
  CHECK(job.began == Counts{1});
  CHECK(job.folders() == Texts{"/runs/checkpoint-1"});
}

TEST_CASE("agent: a training that ends well after a notice does not wait for the copy", "[launch]") {
  JobWithState job(60s);
  job.processes.signal_arrives(SIGUSR1, 1s);
  job.processes.will_end(0, Exited{0}, 5s);
  LaunchPlan plan = plan_of(1);
  plan.notice_signals = {SIGUSR1};
  CHECK(job.run(plan).exit_code == 0);
  CHECK(job.interrupted == 1);
  CHECK(job.folders().empty());
}

TEST_CASE("agent: a copy that does not end within the grace is interrupted, and told once", "[launch]") {
  JobWithState job(60s);
  job.processes.signal_arrives(SIGTERM, 1s);
  LaunchPlan plan = plan_of(1);
  plan.shutdown_timeout = 7s;
  CHECK(job.run(plan).exit_code == 143);
  CHECK(job.processes.elapsed() == 8s);
  CHECK(job.began == Counts{1});
  CHECK(job.folders() == Texts{"was interrupted"});
}

TEST_CASE("agent: workers that take the whole grace leave two seconds for the copy", "[launch]") {
  const auto takes = GENERATE(1500ms, 2500ms);
  JobWithState job(takes);
  job.processes.ignores_signals(0);
  job.processes.signal_arrives(SIGTERM, 1s);
  LaunchPlan plan = plan_of(1);
  plan.shutdown_timeout = 7s;
  CHECK(job.run(plan).exit_code == 143);
  CHECK(job.began == Counts{1, 0});
  CHECK(job.folders() == Texts{"/runs/checkpoint-1", takes < 2s ? "/runs/checkpoint-2" : "was interrupted"});
}

TEST_CASE("agent: a second signal does not wait for the copy", "[launch]") {
  JobWithState job(60s);
  job.processes.ignores_signals(0);
  job.processes.signal_arrives(SIGINT, 1s);
  job.processes.signal_arrives(SIGINT, 3s);
  CHECK(job.run(plan_of(1)).exit_code == 130);
  CHECK(job.processes.elapsed() < 4s);
  CHECK(job.interrupted == 1);
  CHECK(job.folders() == Texts{"was interrupted"});
}

TEST_CASE("agent: a signal limits the copy after a failure", "[launch]") {
  JobWithState job(600s);
  job.processes.will_end(0, Exited{3});
  job.processes.signal_arrives(SIGTERM, 60s);
  LaunchPlan plan = plan_of(1);
  plan.shutdown_timeout = 7s;
  job.run(plan);
  CHECK(job.began.size() == 1);
  CHECK(job.processes.elapsed() == 67s);
  CHECK(job.folders() == Texts{"was interrupted"});
}

TEST_CASE("agent: a copy that fails while workers run is told only if the last one fails, too", "[launch]") {
  JobWithState job;
  const bool fails_again = GENERATE(false, true);
  job.flush.begin = [&](Workers) {
    job.began.push_back(job.processes.running());
    const bool fails = job.began.size() == 1 || fails_again;
    job.processes.will_flush(fails ? FlushResult{.problem = "no space"} : FlushResult{}, 0ms);
    return true;
  };
  job.processes.signal_arrives(SIGTERM, 1s);
  job.run(plan_of(1));
  CHECK(job.began.size() == 2);
  CHECK(job.folders() == (fails_again ? Texts{"no space"} : Texts{}));
}

TEST_CASE("agent: other nodes know that the job ends before the newest state is copied", "[launch]") {
  JobWithState job;
  job.on_last_begin = [&] { CHECK(job.rendezvous.left_because == "it was asked to end by SIGTERM"); };
  job.processes.signal_arrives(SIGTERM, 1s);
  CHECK(job.run(plan_of(1)).exit_code == 143);
  CHECK(job.began == Counts{1, 0});
}

TEST_CASE("agent: only the node with group rank 0 copies the state", "[launch]") {
  JobWithState job;
  job.rendezvous.machine_rank = 1;
  job.processes.will_end(0, Exited{3});
  job.run(plan_of(1));
  CHECK(job.began.empty());
}

TEST_CASE("agent: the state goes to the disk, too, where acc cannot go on", "[launch]") {
  JobWithState job;
  job.rendezvous.on_round = [&] {
    if (job.rendezvous.rounds == 1) job.processes.cannot_start(0);
  };
  SECTION("a worker has failed before") {
    job.processes.will_end_in(0, 0, Exited{3});
    CHECK(job.run(plan_of(1, 1)).exit_code == 3);
  }
  SECTION("none has") {
    job.processes.will_end_in(0, 0, Exited{0});
    job.rendezvous.others = RoundOver{.restart = true, .text = "node 1 was lost"};
    CHECK_THROWS_AS(job.run(plan_of(1, 1)), Error);
  }
  CHECK(job.folders() == Texts{"/runs/checkpoint-1"});
}

TEST_CASE("agent: an agent without a supervisor copies nothing", "[launch]") {
  JobWithState job;
  job.processes.supervisor_is_lost(1s);
  job.run(plan_of(1));
  CHECK(job.began.empty());
}

}  // namespace agent_test
