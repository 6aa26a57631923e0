// SPDX-License-Identifier: Apache-2.0
#include "acc/launch/launch.hpp"

#include <sched.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/resource.h>

#include <array>
#include <boost/asio/io_context.hpp>
#include <fstream>
#include <set>

#include "acc/base/text.hpp"
#include "acc/base/topology.hpp"
#include "acc/control/process_table.hpp"
#include "acc/launch/launch_report.hpp"
#include "acc/launch/process_tree.hpp"
#include "acc/store/server.hpp"
#include "support/catch.hpp"
#include "support/launched.hpp"

namespace launch_test {

using namespace acc;
using namespace acc::launcher;
using namespace acc::test;

namespace {

bool has(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

std::multiset<std::string> lines(const std::string& text) {
  std::multiset<std::string> names;
  for (const std::string& line : split(text, '\n')) {
    if (!line.empty()) names.insert(line);
  }
  return names;
}

}  // namespace

TEST_CASE("launch: a successful job prints nothing", "[process]") {
  const Ran ran = launch_stub({"workers=2"}, {"exit", "0"});
  CHECK(ran.code == 0);
  CHECK(ran.out.empty());
  CHECK(ran.err.empty());
}

TEST_CASE("launch: every exit code of a worker is that of acc", "[process]") {
  for (int code = 0; code < 256; ++code) {
    CHECK(launch_stub({"plain=1"}, {"exit", std::to_string(code)}).code == code);
  }
}

TEST_CASE("launch: a signal that ends a worker gives 128 + n and is named", "[process]") {
  const int signal = GENERATE(SIGHUP, SIGINT, SIGQUIT, SIGILL, SIGTRAP, SIGABRT, SIGBUS, SIGFPE, SIGKILL,
                              SIGUSR1, SIGSEGV, SIGUSR2, SIGPIPE, SIGALRM, SIGTERM);
  const Ran ran = launch_stub({"workers=2"}, {"rank", "1", "raise", std::to_string(signal), "pause"});
  CHECK(ran.code == 128 + signal);
  CHECK(has(ran.err, "acc: rank 1 (local rank 1, pid "));
  CHECK(has(ran.err, signal_name(signal)));
  CHECK(has(ran.err, "1 other worker was stopped: rank 0\n"));
}

TEST_CASE("launch: the report has the error file and the last lines of stderr", "[process]") {
  const Ran ran = launch_stub({"workers=2"},
                              {"errline", "hello", "rank", "1", "errline", "boom", "rank", "1", "error-file",
                               R"({"message": "it broke"})", "rank", "1", "exit", "5", "pause"});
  CHECK(ran.code == 5);
  CHECK(has(ran.err, "failed with exit code 5\n"));
  CHECK(has(ran.err, "  | it broke\n"));
  CHECK(has(ran.err, "  last lines of its stderr:\n  | hello\n  | boom\n"));
}

TEST_CASE("launch: on a terminal the report points to what was shown just above", "[process]") {
  const Ran ran = launch_stub({"workers=2"},
                              {"rank", "1", "errline", "Traceback\nboom", "rank", "1", "error-file",
                               R"({"message": "boom"})", "rank", "1", "exit", "5", "pause"},
                              {.terminal_out = true, .terminal_err = true});
  CHECK(ran.code == 5);
  CHECK(has(ran.out, "  the end of its stderr is just above: boom\n"));
  CHECK(ran.out.find("boom") < ran.out.find("acc: rank 1"));
  CHECK_FALSE(has(ran.out, "| "));
  CHECK_FALSE(has(ran.out, "error file"));
}

TEST_CASE("launch: a worker that ignores SIGTERM is killed", "[process]") {
  const ReportFifo ready;
  const Ran ran = launch_stub({"workers=2", "grace_ms=200"},
                              {"ignore", "15", "rank", "0", "tell", ready.path(), "up", "rank", "1", "await",
                               ready.path(), "rank", "1", "exit", "3", "pause"});
  CHECK(ran.code == 3);
  CHECK(has(ran.err, "acc: rank 0 did not end within 0.2 s and was killed\n"));
}

TEST_CASE("launch: nothing that workers started is left after the end", "[process]") {
  ReportFifo reports;
  const std::string kind = GENERATE(as<std::string>{}, "daemon", "deaf-daemon", "child");
  Launched job(stub({"workers=2", "grace_ms=300"}, {kind, reports.path(), kind, reports.path()}));
  const std::vector<Descriptor> orphans = reports.next_processes(4);
  CHECK(shell_code(job.wait()) == 0);
  CHECK(all_gone(orphans));
}

TEST_CASE("launch: nothing is left after a failure", "[process]") {
  ReportFifo reports;
  const ReportFifo ready;
  Launched job(
      stub({"workers=2", "grace_ms=300"},
           {"deaf-daemon", reports.path(), "child", reports.path(), "rank", "0", "tell", ready.path(), "up",
            "rank", "1", "await", ready.path(), "rank", "1", "exit", "4", "pause"}));
  const std::vector<Descriptor> orphans = reports.next_processes(4);
  CHECK(shell_code(job.wait()) == 4);
  CHECK(all_gone(orphans));
}

TEST_CASE("launch: no process survives SIGKILL of the supervisor", "[process]") {
  ReportFifo reports;
  Launched job(stub({"workers=2"}, {"ignore", "15", "deaf-daemon", reports.path(), "child", reports.path(),
                                    "tell", reports.path(), "worker", "pause"}));
  const std::vector<Descriptor> processes = reports.next_processes(6);
  const Descriptor agent = watch(job.agent());
  job.signal(SIGKILL);
  CHECK(all_gone(processes));
  CHECK(shell_code(job.wait()) == 137);
}

TEST_CASE("launch: no process survives SIGKILL of the agent, which is reported", "[process]") {
  ReportFifo reports;
  Launched job(stub({"workers=2"}, {"ignore", "15", "deaf-daemon", reports.path(), "child", reports.path(),
                                    "tell", reports.path(), "worker", "pause"}));
  const std::vector<Descriptor> processes = reports.next_processes(6);
  ::kill(job.agent(), SIGKILL);
  CHECK(shell_code(job.wait()) == 137);
  CHECK(all_gone(processes));
  CHECK(job.err() == "acc: its agent was ended by signal 9 (SIGKILL); all workers were killed\n");
}

TEST_CASE("launch: no process survives a kill in the middle of 256 starts", "[process]") {
  const bool supervisor = GENERATE(true, false);
  const int after = GENERATE(1, 20, 100);
  ReportFifo reports;
  Launched job(stub({"workers=256"}, {"daemon", reports.path(), "tell", reports.path(), "worker", "pause"}));
  std::vector<Descriptor> descriptors = reports.next_processes(after);
  const pid_t agent = job.agent();
  const std::vector<Descendant> below = descendants_of(agent);
  for (const Descendant& process : below) descriptors.push_back(watch(process.pid));
  ::kill(supervisor ? job.supervisor() : agent, SIGKILL);
  CHECK(shell_code(job.wait()) == 137);
  CHECK(all_gone(descriptors));
  if (!supervisor) CHECK(descendants_of(job.supervisor()).empty());
}

TEST_CASE("launch: a stop signal reaches the workers and gives 128 + n", "[process]") {
  const int signal = GENERATE(SIGINT, SIGTERM, SIGHUP, SIGQUIT);
  ReportFifo reports;
  Launched job(
      stub({"workers=2"}, {"on", std::to_string(signal), "0", "tell", reports.path(), "up", "pause"}));
  const std::vector<Descriptor> workers = reports.next_processes(2);
  job.signal(signal);
  CHECK(shell_code(job.wait()) == 128 + signal);
  CHECK(all_gone(workers));
  CHECK(job.err() == "acc: " + signal_name(signal) + " received, stopping 2 workers (grace 30 s)\n");
}

TEST_CASE("launch: a real-time signal may be one that ends the job", "[process]") {
  ReportFifo reports;
  const std::string signal = std::to_string(SIGRTMIN);
  Launched job(stub({"workers=2", "stop_signal=" + signal},
                    {"on", signal, "0", "tell", reports.path(), "up", "pause"}));
  const std::vector<Descriptor> workers = reports.next_processes(2);
  job.signal(SIGRTMIN);
  CHECK(shell_code(job.wait()) == 128 + SIGRTMIN);
  CHECK(all_gone(workers));
  CHECK(job.err() == "acc: SIGRTMIN received, stopping 2 workers (grace 30 s)\n");
}

TEST_CASE("launch: a stopped job ends although nobody reads its output", "[process]") {
  ReportFifo reports;
  Launched job(stub({"workers=2", "grace_ms=100"},
                    {"flood", "400000", "100", "tell", reports.path(), "written", "pause"}));
  const std::vector<Descriptor> workers = reports.next_processes(2);
  job.signal(SIGTERM);
  CHECK(job.ends_within(kTimeoutMs));
  CHECK(shell_code(job.wait()) == 128 + SIGTERM);
  CHECK(job.err().ends_with(
      " bytes of output are lost: the reader of standard output has not read on in time\n"));
}

TEST_CASE("launch: USR1 and USR2 are only forwarded", "[process]") {
  const int signal = GENERATE(SIGUSR1, SIGUSR2);
  ReportFifo reports;
  ReportFifo gate;
  Launched job(stub({"workers=2"}, {"on-tell", std::to_string(signal), reports.path(), "tell", reports.path(),
                                    "up", "await", gate.path(), "await", gate.path()}));
  reports.next_processes(2);
  job.signal(signal);
  CHECK(reports.next() == "signal " + std::to_string(signal));
  CHECK(reports.next() == "signal " + std::to_string(signal));
  job.signal(SIGTERM);
  CHECK(shell_code(job.wait()) == 143);
}

namespace {

// As Slurm does: every process of the job gets the signal.
void signal_everybody(const Launched& job, int signal) {
  for (const Descendant& process : descendants_of(job.supervisor())) ::kill(process.pid, signal);
  job.signal(signal);
}

}  // namespace

TEST_CASE("launch: a notice to every process of a job ends none of them", "[process]") {
  const bool requeue = GENERATE(true, false);
  const int signal = GENERATE(SIGUSR1, SIGUSR2);
  ReportFifo reports;
  ReportFifo gate;
  Launched job(stub({"workers=2", "engine=1", requeue ? "requeue=1" : "restarts=0"},
                    {"child", reports.path(), "rank", "0", "on-tell", std::to_string(signal), reports.path(),
                     "tell", reports.path(), "up", "await", gate.path()}));
  std::vector<pid_t> processes;
  for (int i = 0; i < 4; ++i) processes.push_back(reports.next_process());
  signal_everybody(job, signal);
  job.wait_for_error("passed on to rank 0; rank 1 has no handler");
  CHECK(reports.next() == "signal " + std::to_string(signal));
  for (const pid_t process : processes) CHECK(read_process(process)->state != 'Z');
  std::ofstream(gate.path()) << "xx" << std::flush;
  CHECK(shell_code(job.wait()) == (requeue ? kRequeueCode : 0));
  const std::string err = job.err();
  CHECK(err.starts_with("acc: " + signal_name(signal) + " received, "));
  CHECK(has(err, "\nacc: the job was preempted") == requeue);
  CHECK(std::ranges::count(err, '\n') == (requeue ? 2 : 1));
}

TEST_CASE("launch: an engine's repeated SIGTERM is one request", "[process]") {
  const bool requeue = GENERATE(true, false);
  ReportFifo reports;
  ReportFifo gate;
  const std::string term = std::to_string(SIGTERM);
  Launched job(stub({"workers=2", "engine=1", requeue ? "requeue=1" : "restarts=0"},
                    {"on-tell", term, reports.path(), "tell", reports.path(), "up", "await", gate.path()}));
  reports.next_processes(2);
  // At a time limit of Slurm.
  for (const int signal : {SIGTERM, SIGCONT, SIGTERM}) signal_everybody(job, signal);
  CHECK(reports.next() == "signal " + term);
  // Later than a signal that only reaches several processes.
  CHECK_FALSE(job.ends_within(200));
  job.signal(SIGTERM);
  CHECK_FALSE(job.ends_within(200));
  std::ofstream(gate.path()) << "xx" << std::flush;
  CHECK(shell_code(job.wait()) == (requeue ? kRequeueCode : 143));
  CHECK_FALSE(has(job.err(), "second signal"));
}

TEST_CASE("launch: a signal to all of acc's processes is one request, however late one passes it on",
          "[process]") {
  ReportFifo reports;
  ReportFifo gate;
  const std::string term = std::to_string(SIGTERM);
  const std::string marker = std::to_string(SIGWINCH);
  Launched job(stub({"workers=1"}, {"on-tell", term, reports.path(), "on-tell", marker, reports.path(),
                                    "tell", reports.path(), "up", "await", gate.path()}));
  reports.next_process();
  const pid_t guardian = job.guardian();
  const pid_t agent = job.agent();
  ::kill(guardian, SIGSTOP);
  for (const pid_t process : {job.supervisor(), guardian, agent}) ::kill(process, SIGTERM);
  CHECK(reports.next() == "signal " + term);
  CHECK_FALSE(job.ends_within(200));  // what one process gets twice within 100 ms counts once
  ::kill(guardian, SIGCONT);
  job.signal(SIGWINCH);  // behind the others: of pending signals the kernel gives the lowest number first
  CHECK(reports.next() == "signal " + marker);
  std::ofstream(gate.path()) << "x" << std::flush;
  CHECK(shell_code(job.wait()) == 143);
  CHECK_FALSE(has(job.err(), "second signal"));
}

TEST_CASE("launch: Ctrl-C in a terminal arrives once", "[process]") {
  ReportFifo reports;
  const std::string interrupt = std::to_string(SIGINT);
  const std::string marker = std::to_string(SIGUSR2);
  Launched job(stub({"workers=2"}, {"on-tell", interrupt, reports.path(), "on-tell", marker, reports.path(),
                                    "tell", reports.path(), "up", "pause"}),
               {.terminal_out = true, .terminal_err = true, .own_session = true});
  reports.next_processes(2);
  job.type("\x03");
  CHECK(reports.next() == "signal " + interrupt);
  CHECK(reports.next() == "signal " + interrupt);
  job.signal(SIGUSR2);
  CHECK(reports.next() == "signal " + marker);
  CHECK(reports.next() == "signal " + marker);
  // The same signal within 100 ms would count as the first one.
  while (job.signal(SIGTERM), !job.ends_within(200)) {
  }
  CHECK(shell_code(job.wait()) == 128 + SIGINT);
  CHECK(job.out().find("second signal: ranks 0, 1 were killed") != std::string::npos);
}

TEST_CASE("launch: Ctrl-Z stops the workers too, and fg goes on with them", "[process]") {
  ReportFifo reports;
  ReportFifo gate;
  Launched job(stub({"workers=2"}, {"tell", reports.path(), "up", "await", gate.path(), "line", "went on"}),
               {.terminal_out = true,
                .terminal_err = true,
                .own_session = true,
                .script = "set -m; \"$@\"; echo stopped; read line; fg; echo ended with $?"});
  const pid_t workers[] = {reports.next_process(), reports.next_process()};
  const auto wait_for_state = [&](bool stopped) {
    for (const pid_t worker : workers) {
      while ((read_process(worker)->state == 'T') != stopped) ::sched_yield();
    }
  };
  job.type("\x1a");
  job.wait_for("stopped");
  wait_for_state(true);
  job.type("\n");
  wait_for_state(false);
  std::ofstream(gate.path()) << "xx" << std::flush;
  job.wait();
  CHECK(has(job.out(), "went on\nwent on\n"));
  CHECK(has(job.out(), "ended with 0"));
}

TEST_CASE("launch: Ctrl-Z ends the job where it is one of the signals that do", "[process]") {
  ReportFifo reports;
  Launched job(stub({"workers=1", "grace_ms=100", "stop_signal=" + std::to_string(SIGTSTP)},
                    {"tell", reports.path(), "up", "pause"}),
               {.terminal_out = true,
                .terminal_err = true,
                .own_session = true,
                .script = "set -m; \"$@\"; echo ended with $?"});
  reports.next_process();
  job.type("\x1a");
  job.wait();
  CHECK(has(job.out(), "killed"));
  CHECK(has(job.out(), "ended with " + std::to_string(128 + SIGTSTP)));
}

TEST_CASE("launch: a job that is stopped can be ended", "[process]") {
  ReportFifo reports;
  Launched job(stub({"workers=1"}, {"on", "15", "5", "tell", reports.path(), "up", "pause"}));
  const pid_t worker = reports.next_process();
  ::kill(job.agent(), SIGTSTP);
  while (read_process(worker)->state != 'T') ::sched_yield();
  ::kill(job.agent(), SIGTERM);
  CHECK(shell_code(job.wait()) == 143);
  CHECK_FALSE(has(job.err(), "killed"));
}

TEST_CASE("launch: Ctrl-Z without a shell to continue the job changes nothing", "[process]") {
  ReportFifo reports;
  ReportFifo gate;
  Launched job(stub({"workers=1"}, {"tell", reports.path(), "up", "await", gate.path()}),
               {.terminal_out = true, .terminal_err = true, .own_session = true});
  reports.next_process();
  job.type("\x1a");
  std::ofstream(gate.path()) << "x" << std::flush;
  CHECK(shell_code(job.wait()) == 0);
}

TEST_CASE("launch: a restart keeps the port of the store", "[process]") {
  const Ran ran = launch_stub({"workers=2", "restarts=2"},
                              {"store", "env", "MASTER_PORT", "attempt", "0", "exit", "6", "line", "second"});
  CHECK(ran.code == 0);
  CHECK(has(ran.err, "failed with exit code 6; restart 1 of 2\n"));
  CHECK(lines(ran.out).count("second") == 2);
  std::set<std::string> ports;
  for (const std::string& line : lines(ran.out)) {
    if (line.starts_with("MASTER_PORT=")) ports.insert(line);
  }
  CHECK(ports.size() == 1);
}

TEST_CASE("launch: workers have a clean process", "[process]") {
  rlimit files = {};
  ::getrlimit(RLIMIT_NOFILE, &files);
  const Ran ran = launch_stub({"workers=2"}, {"process", "fds"});
  const std::string process = "leader 1 odd 0 death 9 files " + std::to_string(files.rlim_cur);
  CHECK(lines(ran.out) == std::multiset<std::string>{process, process, "fds 0 1 2", "fds 0 1 2"});
}

TEST_CASE("launch: bound workers run on their CPUs and prefer the memory of their NUMA nodes", "[process]") {
  const CpuSet cpus = allowed_cpus();
  const std::string first = std::to_string(cpus.front());
  const std::string last = std::to_string(cpus.back());
  const Ran ran = launch_stub({"workers=2", "cpus=" + first + "," + last}, {"placement"});
  // 1 is MPOL_PREFERRED; a container may refuse it.
  const auto shown = [](const std::string& cpu, const std::string& rest) { return "cpus " + cpu + rest; };
  const std::string preferred = " policy 1 nodes 1";
  const std::string refused = " policy 0 nodes 0";
  const auto arguments = [&](const std::string& rest) {
    return std::multiset<std::string>{shown(first, rest), shown(last, rest)};
  };
  CHECK((lines(ran.out) == arguments(preferred) || lines(ran.out) == arguments(refused)));
}

TEST_CASE("launch: a CPU that is not available is one error", "[process]") {
  const Ran ran = launch_stub({"workers=1", "cpus=8000"}, {"exit", "0"});
  CHECK(ran.code == 1);
  CHECK(has(ran.err, "cannot be started: Invalid argument"));
}

TEST_CASE("launch: stdin reaches a worker", "[process]") {
  CHECK(launch_stub({"plain=1"}, {"cat"}, {.input = "typed\n"}).out == "typed\n");
}

TEST_CASE("launch: isatty(3) in a worker is as in acc", "[process]") {
  const std::string workers = GENERATE(as<std::string>{}, "workers=1", "workers=2");
  const bool out = GENERATE(true, false);
  const bool err = GENERATE(true, false);
  const Ran ran = launch_stub({workers}, {"rank", "0", "isatty"}, {.terminal_out = out, .terminal_err = err});
  CHECK(ran.out == std::string("tty ") + (out ? "1" : "0") + (err ? "1" : "0") + "\n");
}

TEST_CASE("launch: bytes are unchanged", "[process]") {
  const std::string odd = "\x01\xff\r\tno newline";
  CHECK(launch_stub({"plain=1"}, {"out", odd}).out == odd);
  CHECK(launch_stub({"workers=2"}, {"rank", "1", "out", odd}).out == odd);
  CHECK(launch_stub({"workers=2"}, {"rank", "1", "err", odd}).err == odd);
}

TEST_CASE("launch: 100 MB of each rank without a split line", "[process]") {
  constexpr std::size_t kBytes = 100'000'000;
  const Ran ran = launch_stub({"workers=2"}, {"flood", std::to_string(kBytes), "120"});
  CHECK(ran.code == 0);
  CHECK(ran.out.size() >= 2 * kBytes);
  std::array<std::size_t, 2> next = {0, 0};
  bool whole = true;
  for (std::size_t offset = 0; offset < ran.out.size() && whole;) {
    const std::size_t end = ran.out.find('\n', offset);
    const std::size_t rank = ran.out[offset + 1] == '1' ? 1 : 0;
    const std::string head = "<" + std::to_string(rank) + ":" + std::to_string(next[rank]++) + ":";
    whole = end - offset == 121 && ran.out.compare(offset, head.size(), head) == 0 && ran.out[end - 1] == '>';
    offset = end + 1;
  }
  CHECK(whole);
  CHECK(next[0] == next[1]);
}

TEST_CASE("launch: 256 workers at once", "[process]") {
  const Ran ran = launch_stub({"workers=256"}, {"env", "RANK"});
  CHECK(ran.code == 0);
  CHECK(lines(ran.out).size() == 256);
  CHECK(ran.err.empty());
}

TEST_CASE("launch: --redirects writes files, --tee both", "[process]") {
  const TemporaryFolder folder;
  const std::string log_dir = "log_dir=" + folder.path().string();
  const auto log = [&](const std::string& name) {
    for (const auto& entry : std::filesystem::recursive_directory_iterator(folder.path())) {
      const std::string path = entry.path().string();
      if (path.ends_with("attempt_0/" + name))
        return folder.read(path.substr(folder.path().string().size() + 1));
    }
    return std::string("(no file)");
  };
  SECTION("redirects") {
    const Ran ran = launch_stub({"workers=2", "redirects=1", log_dir}, {"line", "hi", "errline", "bad"});
    CHECK(ran.out.empty());
    CHECK(ran.err == "bad\nbad\n");
    CHECK(log("1/stdout.log") == "hi\n");
    CHECK(log("1/stderr.log") == "(no file)");
  }
  SECTION("tee") {
    const Ran ran = launch_stub({"workers=2", "tee=3", log_dir}, {"out", "hi"});
    CHECK(lines(ran.out) == std::multiset<std::string>{"[default0]:hi", "[default1]:hi"});
    CHECK(log("0/stdout.log") == "hi");
  }
  SECTION("filter") {
    const Ran ran = launch_stub({"workers=2", "tee=1", "filter=1", log_dir}, {"line", "hi"});
    CHECK(ran.out == "[default1]:hi\n");
    CHECK(log("0/stdout.log") == "hi\n");
  }
}

TEST_CASE("launch: no temporary folder is left", "[process]") {
  const TemporaryFolder folder;
  ::setenv("TMPDIR", folder.path().c_str(), 1);
  const std::string code = GENERATE(as<std::string>{}, "0", "1");
  launch_stub({"workers=2"}, {"exit", code});
  ::unsetenv("TMPDIR");
  CHECK(std::filesystem::is_empty(folder.path()));
}

TEST_CASE("launch: a program that cannot be started is one error line", "[process]") {
  Launched job({"workers=2", "/no/such/program"});
  CHECK(shell_code(job.wait()) == 2);
  CHECK(job.err().starts_with("acc: /no/such/program: cannot be started: "));
  CHECK(std::ranges::count(job.err(), '\n') == 1);
}

TEST_CASE("launch: a port in use is one error line", "[process]") {
  boost::asio::io_context loop;
  const StoreServer other(loop, {});
  const std::string port = std::to_string(other.port());
  const Ran ran = launch_stub({"workers=2", "port=" + port}, {"exit", "0"});
  CHECK(ran.code == 1);
  CHECK(ran.err.starts_with("acc: 127.0.0.1:" + port + ": the store cannot listen: "));
  CHECK(std::ranges::count(ran.err, '\n') == 1);
}

}  // namespace launch_test
