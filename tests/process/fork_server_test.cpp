// SPDX-License-Identifier: Apache-2.0
#include "acc/launch/fork_server.hpp"

#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>

#include "acc/base/subprocess/command.hpp"
#include "acc/launch/local_processes.hpp"
#include "acc/launch/relay.hpp"
#include "support/catch.hpp"
#include "support/errors.hpp"
#include "support/launched.hpp"

namespace fork_server_test {

using namespace acc;
using namespace acc::launcher;
using namespace acc::test;

namespace {

// A job whose script and modules are files of a folder of its own.
struct Preloaded {
  Preloaded(const std::string& module, const std::string& script) {
    ::prctl(PR_SET_CHILD_SUBREAPER, 1);
    folder.write("module.py", module);
    plan.preload = {"module"};
    plan.inherited = Environment::of_process();
    plan.program = find_program("python3", plan.inherited);
    plan.worker_command = {"python3", folder.write("script.py", script).string(), "first", "two words"};
    plan.nproc_per_node = 2;
  }

  // What the preparation came to.
  std::string prepare() {
    REQUIRE(processes.prepare());
    return next<Prepared>().refusal;
  }
  StartedWorker start(int local_rank = 0, const std::optional<CpuBinding>& binding = {}) {
    WorkerStart worker = {.local_rank = local_rank,
                          .program = plan.program,
                          .arguments = plan.worker_command,
                          .environment = plan.inherited,
                          .binding = binding,
                          .preloaded = true};
    worker.environment.set("RANK", std::to_string(local_rank));
    worker.environment.set("FIFO", reports.path());
    return processes.start(worker);
  }
  template <typename Kind>
  Kind next() {
    const AgentEvent event = processes.next(processes.now() + std::chrono::milliseconds(kTimeoutMs));
    REQUIRE(std::holds_alternative<Kind>(event));
    return std::get<Kind>(event);
  }

  ReportFifo reports = {};
  TemporaryFolder folder = {};
  LaunchPlan plan = {};
  Channel pipe = make_pipe();
  boost::asio::io_context loop = {};
  Output output{loop, {}, 2, {pipe.workers.get(), pipe.workers.get()}};
  ForkServer server{loop, plan};
  LocalProcesses processes{loop, output, {.fork_server = &server}};
};

// Reports expressions of the script, and waits for a signal.
std::string telling(const std::string& expressions) {
  return "import os, sys, signal\n"
         "def tell(*words): open(os.environ['FIFO'], 'w').write(' '.join(map(str, words)) + '\\n')\n" +
         expressions + "\nsignal.pause()\n";
}

const std::string kTellPid = telling("tell(os.getpid())");

}  // namespace

TEST_CASE("fork_server: a worker is our child, leads its session, and has its own arguments and variables",
          "[process]") {
  // By what a module may ask while it is preloaded.
  Preloaded job("loaded_in = int(__import__('os').readlink('/proc/self'))",
                telling("import module\n"
                        "tell(os.getppid(), os.getsid(0) == os.getpid(), sys.argv[1:], os.environ['RANK'], "
                        "os.getenv('RANK'), module.loaded_in == os.getppid(), module.loaded_in)"));
  REQUIRE(job.prepare().empty());
  const StartedWorker worker = job.start(1);
  CHECK(job.reports.next() == std::to_string(::getpid()) + " True ['first', 'two words'] 1 1 False " +
                                  std::to_string(job.server.pid()));
  CHECK(::getsid(worker.pid) == worker.pid);
  job.processes.signal(1, SIGTERM);
  CHECK(job.next<WorkerEnded>().status == ExitStatus(Signaled{SIGTERM}));
}

TEST_CASE("fork_server: a worker is bound to its CPUs, and one that cannot be is an error as ever",
          "[process]") {
  Preloaded job("", telling("tell(os.sched_getaffinity(0))"));
  REQUIRE(job.prepare().empty());
  job.start(0, CpuBinding{.cpus = {0}, .numa_nodes = {0}});
  CHECK(job.reports.next() == "{0}");
  job.processes.signal(0, SIGTERM);
  job.next<WorkerEnded>();
  CHECK(error_of([&] {
          job.start(1, CpuBinding{.cpus = {5000}, .numa_nodes = {0}});
        }).find("Invalid argument") != std::string::npos);
}

TEST_CASE("fork_server: it is started once for all workers and attempts, and is not an orphan", "[process]") {
  Preloaded job("", "raise SystemExit(4)");
  REQUIRE(job.prepare().empty());
  const pid_t server = job.server.pid();
  for (int attempt = 0; attempt < 2; ++attempt) {
    CHECK_FALSE(job.processes.prepare());
    job.start(0);
    job.start(1);
    CHECK(job.next<WorkerEnded>().status == ExitStatus(Exited{4}));
    CHECK(job.next<WorkerEnded>().status == ExitStatus(Exited{4}));
    CHECK_FALSE(job.processes.signal_orphans(SIGKILL));
    job.processes.end_attempt();
  }
  CHECK(job.server.pid() == server);
}

TEST_CASE("fork_server: its death ends no worker, and another takes its place", "[process]") {
  Preloaded job("", kTellPid);
  REQUIRE(job.prepare().empty());
  job.start(0);
  job.reports.next();
  const pid_t first = job.server.pid();
  const Descriptor ended = watch(first);
  ::kill(first, SIGKILL);
  std::vector<Descriptor> servers;
  servers.push_back(watch(first));
  REQUIRE(all_gone(servers));
  // The worker that is started before this is noticed starts cold.
  job.start(1);
  job.reports.next();
  while (job.server.pid() == first) job.processes.next(job.processes.now() + std::chrono::milliseconds(10));
  CHECK(job.prepare().empty());
  CHECK(job.server.pid() != first);
  for (const int rank : {0, 1}) {
    job.processes.signal(rank, SIGTERM);
    CHECK(job.next<WorkerEnded>().status == ExitStatus(Signaled{SIGTERM}));
  }
}

TEST_CASE("fork_server: nothing is left of it when it is destroyed", "[process]") {
  std::vector<Descriptor> servers;
  {
    Preloaded job("", "");
    REQUIRE(job.prepare().empty());
    servers.push_back(watch(job.server.pid()));
  }
  CHECK(all_gone(servers));
}

TEST_CASE("fork_server: what imports did that no fork survives is named with the module", "[process]") {
  const auto refusal = [](const std::string& module) { return Preloaded(module, "").prepare(); };
  CHECK(
      refusal(
          "import threading, time\nthreading.Thread(target=time.sleep, args=(1000,), daemon=True).start()") ==
      "importing module starts 1 thread");
  // It ends with the pipe.
  CHECK(refusal("import subprocess\nkept = subprocess.Popen(['cat'], stdin=subprocess.PIPE)") ==
        "importing module starts a process");
  CHECK(refusal("import socket\nkept = socket.socket()") == "importing module opens a socket");
  CHECK(refusal("import os\nrank = int(os.environ.get('RANK', 0))") ==
        "importing module reads RANK, which each worker has for itself");
  CHECK(refusal("import nothing_of_this_name") ==
        "module cannot be imported (ModuleNotFoundError: No module named 'nothing_of_this_name')");
  CHECK(refusal("raise SystemExit('stop')") == "module cannot be imported (SystemExit: stop)");
  CHECK(refusal("import os, signal\nos.kill(os.getpid(), signal.SIGSEGV)")
            .starts_with("importing module ends the process with signal 11"));
}

TEST_CASE("fork_server: threads that end in time, and variables that all workers share, are no obstacle",
          "[process]") {
  CHECK(Preloaded("import os, threading\n"
                  "thread = threading.Thread(target=len, args=('',))\nthread.start()\nthread.join()\n"
                  "os.environ.get('PATH'), os.environ.get('LOCAL_WORLD_SIZE')",
                  "")
            .prepare()
            .empty());
}

TEST_CASE("fork_server: after a refusal workers start cold, and nothing is prepared again", "[process]") {
  Preloaded job("raise ValueError('no')", kTellPid);
  CHECK(job.prepare() == "module cannot be imported (ValueError: no)");
  CHECK(job.server.pid() == 0);
  CHECK_FALSE(job.processes.prepare());
  const StartedWorker worker = job.start();
  CHECK(job.reports.next_process() == worker.pid);
  job.processes.signal(0, SIGKILL);
  job.next<WorkerEnded>();
}

}  // namespace fork_server_test
