// SPDX-License-Identifier: Apache-2.0
// Real agents and workers, shown and controlled through their sockets.
#include <sched.h>
#include <signal.h>
#include <stdlib.h>
#include <unistd.h>

#include <fstream>

#include "acc/control/control_client.hpp"
#include "acc/control/log_reader.hpp"
#include "acc/control/process_table.hpp"
#include "support/catch.hpp"
#include "support/launched.hpp"

namespace control_test {

using namespace acc;
using namespace acc::launcher;
using namespace acc::test;
using nlohmann::json;
namespace fs = std::filesystem;

namespace {

bool has(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

/// A runtime folder for the jobs of one test.
class Jobs {
 public:
  Jobs() { ::setenv("XDG_RUNTIME_DIR", folder_.path().c_str(), 1); }

  RunningJob only() const {
    FoundJobs found_jobs = find_jobs({sockets()});
    REQUIRE(found_jobs.warnings.empty());
    REQUIRE(found_jobs.silent.empty());
    REQUIRE(found_jobs.running.size() == 1);
    return std::move(found_jobs.running[0]);
  }
  fs::path sockets() const { return folder_.path() / "acc"; }
  bool none() const { return fs::is_empty(sockets()); }
  fs::path path() const { return folder_.path(); }

 private:
  TemporaryFolder folder_;
};

std::string logs_of(RunningJob job) {
  std::string text;
  LogReader reader(
      job, {},
      [&](int rank, StreamName, std::string_view bytes) {
        text += std::to_string(rank) + ":" + std::string(bytes);
      },
      [&](const std::string& note) { text += "(" + note + ")"; });
  reader.read();
  return text;
}

// A worker with log files that prints how often it was started, and then fails with 5 when it is told to; it
// is restarted once.
struct Restarting {
  explicit Restarting(const fs::path& folder)
      : launched(stub({"redirects=3", "restarts=1", "log_dir=" + (folder / "logs").string()},
                      {"env", "TORCHELASTIC_RESTART_COUNT", "tell", reports.path(), "up", "await",
                       gate.path(), "exit", "5"})) {
    reports.next_processes(1);
  }

  void go_on() const { std::ofstream(gate.path()) << "x"; }

  ReportFifo reports = {};
  // Open here, too: the next attempt would read the end of a pipe that go_on() closes late.
  ReportFifo gate = {};
  Launched launched;
};

}  // namespace

TEST_CASE("control: a running job shows its ranks, and leaves nothing at its end", "[process]") {
  const Jobs jobs;
  ReportFifo reports;
  Launched launched(stub({"workers=2"}, {"tell", reports.path(), "up", "pause"}));
  const std::vector<Descriptor> workers = reports.next_processes(2);
  const JobView job = jobs.only().view;
  CHECK(job.id == "acc-test-stub-" + std::to_string(launched.supervisor()));
  CHECK(job.pid == launched.supervisor());
  CHECK(job.agent == launched.agent());
  REQUIRE(job.ranks.size() == 2);
  CHECK(job.ranks[1].rank == 1);
  CHECK(job.ranks[1].ended.empty());
  launched.signal(SIGTERM);
  launched.wait();
  CHECK(all_gone(workers));
  CHECK(jobs.none());
}

TEST_CASE("control: stop ends a job as SIGTERM does, and says how it ended", "[process]") {
  const Jobs jobs;
  ReportFifo reports;
  Launched launched(stub({"workers=2"}, {"on", "15", "0", "tell", reports.path(), "up", "pause"}));
  reports.next_processes(2);
  RunningJob job = jobs.only();
  job.client.send({{"request", "stop"}});
  CHECK(job.client.read_message() == json::object());
  CHECK(job.client.read_message() == json{{"ended", 143}});
  CHECK(shell_code(launched.wait()) == 143);
  CHECK(has(launched.err(), "acc: SIGTERM received, stopping 2 workers"));
}

TEST_CASE("control: stop at once kills a worker that would not end", "[process]") {
  const Jobs jobs;
  ReportFifo reports;
  Launched launched(stub({"workers=2"}, {"ignore", "15", "tell", reports.path(), "up", "pause"}));
  const std::vector<Descriptor> workers = reports.next_processes(2);
  RunningJob job = jobs.only();
  job.client.send({{"request", "stop"}, {"now", true}});
  CHECK(shell_code(launched.wait()) == 143);
  CHECK(all_gone(workers));
}

TEST_CASE("control: the output of ranks can be read", "[process]") {
  const Jobs jobs;
  ReportFifo reports;
  Launched launched(
      stub({"workers=2"}, {"line", "to out", "errline", "to err", "tell", reports.path(), "up", "pause"}));
  reports.next_processes(2);
  RunningJob job = jobs.only();
  std::string text;
  const auto take = [&](int rank, StreamName, std::string_view bytes) {
    text += std::to_string(rank) + ":" + std::string(bytes);
    const bool all = has(text, "0:to out\n") && has(text, "1:to out\n") && has(text, "0:to err\n") &&
                     has(text, "1:to err\n");
    if (all) launched.signal(SIGTERM);
  };
  CHECK(LogReader(job, {}, take, [](const std::string&) {}).follow() == 143);
  launched.wait();
}

TEST_CASE("control: log files are read, and followed over a restart", "[process]") {
  const Jobs jobs;
  Restarting worker(jobs.path());
  CHECK(logs_of(jobs.only()) == "0:TORCHELASTIC_RESTART_COUNT=0\n");
  RunningJob job = jobs.only();
  std::string text;
  const auto take = [&](int rank, StreamName /*stream*/, std::string_view bytes) {
    text += std::to_string(rank) + ":" + std::string(bytes);
    worker.go_on();
  };
  CHECK(LogReader(job, {}, take, [](const std::string&) {}).follow() == 5);
  CHECK(text == "0:TORCHELASTIC_RESTART_COUNT=0\n0:TORCHELASTIC_RESTART_COUNT=1\n");
  CHECK(shell_code(worker.launched.wait()) == 5);
}

TEST_CASE("control: following after a restart gets the current attempt", "[process]") {
  const Jobs jobs;
  Restarting worker(jobs.path());
  RunningJob job = jobs.only();
  worker.go_on();
  worker.reports.next_processes(1);
  std::string text;
  const auto take = [&](int /*rank*/, StreamName /*stream*/, std::string_view bytes) {
    text += bytes;
    if (has(text, "TORCHELASTIC_RESTART_COUNT=1\n")) worker.launched.signal(SIGTERM);
  };
  CHECK(LogReader(job, {}, take, [](const std::string&) {}).follow() == 143);
  worker.launched.wait();
}

TEST_CASE("control: a stream that is not kept is named", "[process]") {
  const Jobs jobs;
  ReportFifo reports;
  Launched launched(stub({}, {"line", "gone", "tell", reports.path(), "up", "pause"}));
  reports.next_processes(1);
  CHECK(logs_of(jobs.only()).starts_with("(standard output of rank 0 is acc's own and is not kept"));
}

TEST_CASE("control: the stacks of a stopped rank are shown while the job continues", "[process]") {
  const Jobs jobs;
  ReportFifo reports;
  Launched launched(
      stub({"workers=3", "path="}, {"tell", reports.path(), "up", "rank", "1", "raise", "19", "pause"}));
  reports.next_processes(3);
  RunningJob job = jobs.only();
  for (const RankView& rank : job.view.ranks) {
    while (read_process(rank.pid)->state != (rank.rank == 1 ? 'T' : 'S')) ::sched_yield();
  }
  std::string text;
  job.client.send({{"request", "stacks"}});
  job.client.read_to_end([&](std::string_view more) { text += more; });
  CHECK(has(text, "rank 1: stopped, 0% CPU\n"));
  CHECK(has(text, "rank 1 differs: stopped, while the other 2 are sleeping in "));
  CHECK(has(text, "gdb is not on PATH"));
  CHECK(jobs.only().view.ranks.size() == 3);
}

TEST_CASE("control: the socket of a killed agent is removed", "[process]") {
  const Jobs jobs;
  ReportFifo reports;
  Launched launched(stub({}, {"tell", reports.path(), "up", "pause"}));
  reports.next_processes(1);
  ::kill(launched.agent(), SIGKILL);
  launched.wait();
  CHECK(jobs.none());
}

TEST_CASE("control: a job runs even if the runtime folder cannot be used", "[process]") {
  const Jobs jobs;
  fs::create_directory(jobs.sockets());
  fs::permissions(jobs.sockets(), fs::perms::all);
  const Ran ran = launch_stub({}, {"exit", "3"});
  CHECK(ran.code == 3);
  CHECK_FALSE(has(ran.err, "socket"));
  CHECK(jobs.none());
}

TEST_CASE("control: the files of --watch are made anew for an attempt if they have vanished", "[process]") {
  const Jobs jobs;
  ReportFifo reports;
  ReportFifo gate;
  Launched launched(
      stub({"watch=1", "restarts=1"}, {"tell", reports.path(), "up", "await", gate.path(), "exit", "5"}));
  reports.next_processes(1);
  fs::remove_all(jobs.sockets());
  std::ofstream(gate.path()) << "x";
  reports.next_processes(1);
  const std::string folder = "acc-test-stub-" + std::to_string(launched.supervisor()) + ".watch";
  CHECK(fs::exists(jobs.sockets() / folder / "sitecustomize.py"));
  std::ofstream(gate.path()) << "x";
  CHECK(shell_code(launched.wait()) == 5);
  CHECK(jobs.none());
}

TEST_CASE("control: a hung job is reported, stopped and ends with 124", "[process]") {
  const Ran ran = launch_stub({"workers=3", "hang_ms=200", "on_hang=kill", "path="},
                              {"line", "begun", "rank", "1", "raise", "19", "pause"});
  CHECK(ran.code == 124);
  CHECK(has(ran.err, "acc: no rank has written anything "));
  CHECK(has(ran.err, "rank 1: stopped, 0% CPU\n"));
  CHECK(has(ran.err, "rank 1 differs: stopped, while the other 2 are "));
  CHECK(has(ran.err, "acc: the job hung and was stopped "));
}

TEST_CASE("control: a hung job is restarted while restarts are left", "[process]") {
  const Ran ran = launch_stub({"workers=2", "hang_ms=200", "on_hang=restart", "restarts=1", "path="},
                              {"attempt", "1", "exit", "0", "pause"});
  CHECK(ran.code == 0);
  CHECK(has(ran.err, "acc: the job hung; restart 1 of 1\n"));
}

}  // namespace control_test
