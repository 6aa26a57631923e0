// SPDX-License-Identifier: Apache-2.0
// --pid-namespace: jobs in a pid namespace. Skipped if the system does not allow it.
#include "acc/launch/process_tree.hpp"

#include <sched.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <fstream>
#include <iostream>
#include <set>

#include "acc/control/control_client.hpp"
#include "acc/control/process_table.hpp"
#include "support/catch.hpp"
#include "support/errors.hpp"
#include "support/in_child.hpp"
#include "support/launched.hpp"
#include "support/skip.hpp"

namespace process_tree_test {

using namespace acc;
using namespace acc::launcher;
using namespace acc::test;
namespace fs = std::filesystem;

namespace {

bool has(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

bool allowed() {
  const bool can = in_child([] {
                     try {
                       enter_pid_namespace();
                     } catch (const Error&) {
                       return kSkipped;
                     }
                     return in_child([] {
                       try {
                         const HostPids outside;
                         return 0;
                       } catch (const Error&) {
                         return kSkipped;
                       }
                     });
                   }) == 0;
  if (!can) skip("no pid namespace can be made");
  return can;
}

auto count_log_folders(const fs::path& folder) {
  return std::ranges::count_if(fs::directory_iterator(folder), [](const fs::directory_entry& entry) {
    return entry.path().filename().string().starts_with("torchelastic_");
  });
}

// Descriptors to watch(), for all descendants of the supervisor.
std::vector<Descriptor> everything_below(pid_t supervisor) {
  std::vector<Descriptor> all;
  for (const Descendant& process : descendants_of(supervisor)) all.push_back(watch(process.pid));
  return all;
}

}  // namespace

TEST_CASE("pid_namespace: no process survives when all of acc is killed at once", "[process]") {
  if (!allowed()) return;
  const TemporaryFolder folder;
  const TemporaryFolder runtime;
  ::chmod(runtime.path().c_str(), 0700);
  ::setenv("TMPDIR", folder.path().c_str(), 1);
  ::setenv("XDG_RUNTIME_DIR", runtime.path().c_str(), 1);
  const char* asked = ::getenv("ACC_TEST_KILLS");
  const int kills = asked == nullptr ? 10 : std::stoi(asked);
  for (int attempt = 0; attempt < kills; ++attempt) {
    CAPTURE(attempt);
    ReportFifo reports;
    Launched job(stub({"workers=2", "namespace=1"}, {"deaf-daemon", reports.path(), "child", reports.path(),
                                                     "tell", reports.path(), "up", "pause"}));
    for (int i = 0; i < 6; ++i) reports.next();
    const std::vector<Descriptor> all = everything_below(job.supervisor());
    REQUIRE(all.size() >= 8);  // guardian, agent, and of each worker itself, a child and a daemon
    const pid_t agent = job.agent();
    const pid_t guardian = job.guardian();
    job.signal(SIGKILL);
    ::kill(guardian, SIGKILL);
    ::kill(agent, SIGKILL);
    job.wait();
    REQUIRE(all_gone(all));
    // The next job removes what they leave on the disk, which is nothing if the guardian saw the first of
    // them die.
    CHECK(count_log_folders(folder.path()) <= 1);
    CHECK(launch_stub({"workers=2"}, {"exit", "0"}).code == 0);
    CHECK(count_log_folders(folder.path()) == 0);
    CHECK(fs::is_empty(runtime.path() / "acc"));
  }
  ::unsetenv("TMPDIR");
  ::unsetenv("XDG_RUNTIME_DIR");
}

TEST_CASE("pid_namespace: a job runs, fails and is stopped there as elsewhere", "[process]") {
  if (!allowed()) return;
  CHECK(launch_stub({"workers=2", "namespace=1"}, {"exit", "0"}).code == 0);
  const Ran failed = launch_stub({"workers=2", "namespace=1", "restarts=1", "grace_ms=300"},
                                 {"line", "hello", "rank", "1", "exit", "7", "pause"});
  CHECK(failed.code == 7);
  CHECK(has(failed.err, "failed with exit code 7; restart 1 of 1\n"));
  CHECK(launch_stub({"workers=1", "namespace=1"}, {"raise", "11"}).code == 139);

  ReportFifo reports;
  Launched job(
      stub({"workers=2", "namespace=1"}, {"daemon", reports.path(), "tell", reports.path(), "up", "pause"}));
  for (int i = 0; i < 4; ++i) reports.next();
  const std::vector<Descriptor> all = everything_below(job.supervisor());
  job.signal(SIGTERM);
  CHECK(shell_code(job.wait()) == 143);
  CHECK(all_gone(all));
}

TEST_CASE("pid_namespace: other commands see outer pids, ranks see inner ones", "[process]") {
  if (!allowed()) return;
  const TemporaryFolder runtime;
  ::chmod(runtime.path().c_str(), 0700);
  ::setenv("XDG_RUNTIME_DIR", runtime.path().c_str(), 1);
  ReportFifo reports;
  Launched job(stub({"workers=2", "namespace=1", "path="},
                    {"tell", reports.path(), "up", "rank", "1", "raise", "19", "pause"}));
  const std::set<pid_t> reported = {reports.next_process(), reports.next_process()};
  FoundJobs jobs = find_jobs({runtime.path() / "acc"});
  REQUIRE(jobs.running.size() == 1);
  const JobView& view = jobs.running[0].view;
  CHECK(view.pid == job.supervisor());
  CHECK(view.agent == job.agent());
  std::set<pid_t> inside;
  for (const RankView& rank : view.ranks) {
    inside.insert(rank.pid_inside);
    REQUIRE(read_process(rank.pid));
    CHECK(read_process(rank.pid)->parent == job.agent());
  }
  CHECK(inside == reported);
  while (read_process(view.ranks[1].pid)->state != 'T') ::sched_yield();

  // The agent uses the inner pids.
  std::string text;
  jobs.running[0].client.send({{"request", "stacks"}});
  jobs.running[0].client.read_to_end([&](std::string_view more) { text += more; });
  CHECK(has(text, "rank 1: stopped, 0% CPU\n"));
  CHECK(has(text, "rank 1 (local rank 1, pid " + std::to_string(view.ranks[1].pid) + "): stopped"));
  ::unsetenv("XDG_RUNTIME_DIR");
}

TEST_CASE("pid_namespace: the report shows the outer pid of a worker", "[process]") {
  if (!allowed()) return;
  ReportFifo reports;
  ReportFifo gate;
  Launched job(
      stub({"workers=1", "namespace=1"}, {"tell", reports.path(), "up", "await", gate.path(), "exit", "3"}));
  reports.next();
  const std::vector<Descendant> below = descendants_of(job.supervisor());
  REQUIRE(below.size() == 3);
  std::ofstream(gate.path()) << "x" << std::flush;
  CHECK(shell_code(job.wait()) == 3);
  INFO(job.err());
  CHECK(has(job.err(), "(local rank 0, pid " + std::to_string(below.back().pid) + ")"));
}

TEST_CASE("pid_namespace: works without root, where user namespaces are allowed", "[process]") {
  if (!allowed() || ::geteuid() != 0) return;
  const TemporaryFolder folder;
  fs::permissions(folder.path(), fs::perms::all);
  constexpr uid_t kNobody = 65534;
  const int result = in_child([&] {
    if (::setgid(kNobody) != 0 || ::setuid(kNobody) != 0) return kSkipped;
    ::prctl(PR_SET_DUMPABLE, 1);  // as after execve()
    const bool may = in_child([] {
                       enter_pid_namespace();
                       return 0;
                     }) == 0;
    if (!may) return kSkipped;
    ::setenv("TMPDIR", folder.path().c_str(), 1);
    const Ran ran = launch_stub({"workers=2", "namespace=1"}, {"exit", "4"});
    return ran.code == 4 && has(ran.err, "failed with exit code 4") ? 0 : 1;
  });
  if (result == kSkipped) {
    skip("users may not make namespaces");
    return;
  }
  CHECK(result == 0);
}

TEST_CASE("pid_namespace: an error if the system does not allow it", "[process]") {
  const int result = in_child([] {
    if (::unshare(CLONE_NEWUSER) != 0) return kSkipped;
    std::ofstream("/proc/self/uid_map") << "0 0 1";
    std::ofstream limit("/proc/sys/user/max_pid_namespaces");
    limit << "0" << std::flush;
    if (!limit) return kSkipped;
    const Ran ran = launch_stub({"workers=2", "namespace=1"}, {"line", "started"});
    if (ran.code == 1 && ran.out.empty() &&
        ran.err.starts_with("acc: --pid-namespace: the system does not allow this: "))
      return 0;
    std::cerr << ran.code << ran.out << ran.err;
    return 1;
  });
  if (result == kSkipped) {
    skip("the limit of pid namespaces cannot be set");
    return;
  }
  CHECK(result == 0);
}

}  // namespace process_tree_test
