// SPDX-License-Identifier: Apache-2.0
// Kills parts of acc at random times, also of jobs that are suspended or have restarted: no process may
// survive. ACC_TEST_KILLS sets the number of kills (default 100); each must then also take less than a
// second, unless delays are preloaded (scripts/flakes --delays), whose seed is then that of all random
// numbers here, too.
#include <signal.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <iostream>
#include <map>
#include <random>

#include "acc/base/text.hpp"
#include "acc/launch/process_tree.hpp"
#include "support/catch.hpp"
#include "support/launched.hpp"

namespace kills_test {

using namespace acc;
using namespace acc::launcher;
using namespace acc::test;

namespace {

using Clock = std::chrono::steady_clock;
using Words = std::vector<std::string>;

constexpr const char* kMark = "ACC_TEST_KILLS_MARK";
constexpr const char* kDelays = "ACC_DELAYS_SEED";

struct Shape {
  std::string name = {};
  Words options = {};
  Words actions = {};
  std::chrono::microseconds undisturbed = {};
};

std::vector<Shape> shapes(const std::string& fifo) {
  return {
      {"plain", {"workers=2"}, {"nap", "20"}},
      {"alone", {"plain=1"}, {"nap", "20"}},
      {"tee", {"workers=2", "tee=3"}, {"line", "a", "nap", "10", "errline", "b", "nap", "10"}},
      {"restarts", {"workers=2", "restarts=2", "grace_ms=300"}, {"nap", "10", "attempt", "0", "exit", "3"}},
      {"daemons", {"workers=2", "grace_ms=100"}, {"deaf-daemon", fifo, "child", fifo, "nap", "20"}},
      {"deaf",
       {"workers=2", "grace_ms=100"},
       {"ignore", "15", "daemon", fifo, "rank", "0", "exit", "4", "nap", "10000"}},
      {"sixteen", {"workers=16"}, {"daemon", fifo, "nap", "10"}},
  };
}

// All living processes with this mark in their environment. Zombies have no environment.
std::vector<pid_t> marked(const std::string& mark) {
  const std::string wanted = std::string(kMark) + "=" + mark;
  std::vector<pid_t> pids;
  for (const auto& entry : std::filesystem::directory_iterator("/proc")) {
    const auto pid = parse_integer(entry.path().filename().string());
    if (!pid || *pid == ::getpid()) continue;
    std::ifstream in(entry.path() / "environ", std::ios::binary);
    for (std::string variable; std::getline(in, variable, '\0');) {
      if (variable == wanted) pids.push_back(static_cast<pid_t>(*pid));
    }
  }
  return pids;
}

// Waits until no process has the mark, twice in a row: one may have forked during the first scan.
bool nobody_left(const std::string& mark) {
  for (int empty = 0; empty < 2;) {
    std::vector<Descriptor> living;
    for (const pid_t pid : marked(mark)) living.push_back(watch(pid));
    if (!all_gone(living)) return false;
    empty = living.empty() ? empty + 1 : 0;
  }
  return true;
}

void sleep_for(std::chrono::microseconds time) {
  const timespec wait = {.tv_sec = time.count() / 1'000'000, .tv_nsec = time.count() % 1'000'000 * 1000};
  ::clock_nanosleep(CLOCK_MONOTONIC, 0, &wait, nullptr);
}

// The processes of a job at one moment.
struct Parts {
  std::optional<Descendant> guardian = {};
  std::optional<Descendant> agent = {};
  std::vector<Descendant> workers = {};
};

Parts parts_of(pid_t supervisor) {
  Parts parts;
  for (const Descendant& process : descendants_of(supervisor)) {
    if (process.parent == supervisor && !parts.guardian) {
      parts.guardian = process;
    } else if (parts.guardian && process.parent == parts.guardian->pid && !parts.agent) {
      parts.agent = process;
    } else if (parts.agent && process.parent == parts.agent->pid) {
      parts.workers.push_back(process);
    }
  }
  return parts;
}

// By pidfd, and only if its parent is unchanged, so that no other process is killed.
void kill_part(const std::optional<Descendant>& part) {
  if (!part) return;
  const Descriptor process = watch(part->pid);
  for (const Descendant& now : descendants_of(part->parent)) {
    if (process && now.pid == part->pid && now.parent == part->parent) {
      ::syscall(SYS_pidfd_send_signal, process.get(), SIGKILL, nullptr, 0);
    }
  }
}

const Words& victims() {
  static const Words all = {"supervisor",          "guardian",         "agent",         "worker",
                            "supervisor+guardian", "supervisor+agent", "guardian+agent"};
  return all;
}

void kill(const Launched& job, const Parts& parts, const std::string& victim, std::mt19937& random) {
  if (victim == "worker") {
    if (parts.workers.empty()) return;
    return kill_part(parts.workers[random() % parts.workers.size()]);
  }
  const bool supervisor = victim.find("supervisor") != std::string::npos;
  if (supervisor) job.signal(SIGKILL);
  if (victim.find("agent") != std::string::npos) kill_part(parts.agent);
  if (victim.find("guardian") != std::string::npos) kill_part(parts.guardian);
}

// Suspends the job at a random time before it is killed, as Ctrl-Z does; afterwards it goes on, as by `fg`.
class Suspension {
 public:
  Suspension(const Launched& job, std::chrono::microseconds time_left, std::mt19937& random) : job_(job) {
    const auto before = std::uniform_int_distribution<std::int64_t>(0, time_left.count())(random);
    sleep_for(std::chrono::microseconds(before));
    job.signal(SIGTSTP);
    sleep_for(time_left - std::chrono::microseconds(before));
  }
  ~Suspension() { job_.signal(SIGCONT); }
  Suspension(const Suspension&) = delete;
  Suspension& operator=(const Suspension&) = delete;

 private:
  const Launched& job_;
};

// At least one of acc's processes survives, which cleans up.
bool leaves_somebody(const Parts& parts, const std::string& victim) {
  const auto spared = [&](const char* name) { return victim.find(name) == std::string::npos; };
  return spared("supervisor") || (parts.guardian && spared("guardian")) || (parts.agent && spared("agent"));
}

Words files_below(const std::filesystem::path& folder) {
  Words files;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(folder))
    files.push_back(entry.path());
  return files;
}

class TestEnvironment {
 public:
  TestEnvironment(const std::string& mark, const TemporaryFolder& folder, const std::string& delays) {
    ::setenv(kMark, mark.c_str(), 1);
    if (!delays.empty()) ::setenv(kDelays, delays.c_str(), 1);
    ::setenv("TMPDIR", folder.path().c_str(), 1);
    // LeakSanitizer checks in a separate process; if that is killed, its parent waits for ever.
    ::setenv("LSAN_OPTIONS", "detect_leaks=0", 1);
  }
  ~TestEnvironment() {
    ::unsetenv(kMark);
    ::unsetenv("TMPDIR");
    ::unsetenv("LSAN_OPTIONS");
  }
  TestEnvironment(const TestEnvironment&) = delete;
  TestEnvironment& operator=(const TestEnvironment&) = delete;
};

std::chrono::microseconds since(Clock::time_point began) {
  return std::chrono::duration_cast<std::chrono::microseconds>(Clock::now() - began);
}

}  // namespace

TEST_CASE("kills: no process survives, whatever is killed, at any time", "[process]") {
  const char* asked = ::getenv("ACC_TEST_KILLS");
  const int kills = asked == nullptr ? 100 : std::stoi(asked);
  const ReportFifo reports;  // never read: the FIFO buffers everything
  std::vector<Shape> jobs = shapes(reports.path());
  for (Shape& job : jobs) {
    const auto began = Clock::now();
    launch_stub(job.options, job.actions);
    job.undisturbed = since(began);
  }
  const char* delays = ::getenv(kDelays);
  const bool delayed = delays != nullptr;
  const unsigned seed = delayed ? static_cast<unsigned>(std::stoul(delays)) : 20'26U;
  std::mt19937 random(seed);
  std::map<std::string, int> hit;
  std::chrono::microseconds slowest = {};
  for (int i = 0; i < kills; ++i) {
    const ReportFifo own_phone;
    const Shape shape = shapes(own_phone.path())[static_cast<std::size_t>(i) % jobs.size()];
    const auto whole = jobs[static_cast<std::size_t>(i) % jobs.size()].undisturbed;
    const std::string& victim = victims()[random() % victims().size()];
    const auto moment =
        std::chrono::microseconds(std::uniform_int_distribution<std::int64_t>(0, whole.count())(random));
    const bool suspended = random() % 4 == 0;
    CAPTURE(seed, i, shape.name, victim, moment.count(), suspended);

    const TemporaryFolder folder;
    const std::string mark = std::to_string(::getpid()) + "." + std::to_string(i);
    Parts parts;
    Clock::time_point killed;
    {
      const TestEnvironment environment(mark, folder, delayed ? std::to_string(random()) : "");
      Launched job(stub(shape.options, shape.actions));
      {
        std::optional<Suspension> suspension;
        if (suspended) {
          suspension.emplace(job, moment, random);
        } else {
          sleep_for(moment);
        }
        parts = parts_of(job.supervisor());
        kill(job, parts, victim, random);
      }
      killed = Clock::now();
      job.wait();
    }
    const bool gone = nobody_left(mark);
    const auto took = since(killed);
    REQUIRE(gone);
    // A failed job's logs are kept.
    const bool keeps_logs = shape.name == "tee" && victim == "worker";
    if (leaves_somebody(parts, victim) && !keeps_logs) REQUIRE(files_below(folder.path()) == Words{});
    // After the death of a worker the job waits for the grace period of the others; an undisturbed job ends
    // by itself.
    if (victim != "worker" && parts.agent) {
      slowest = std::max(slowest, took);
      if (asked != nullptr && !delayed) CHECK(took < std::chrono::seconds(1));
    }
    ++hit[victim + (suspended ? ", suspended" : "") +
          (parts.workers.empty() ? parts.agent ? ", no workers" : ", no agent" : ", workers")];
  }
  if (asked == nullptr) return;
  for (const auto& [what, count] : hit) std::cout << count << "\t" << what << "\n";
  std::cout << "slowest: nobody left after " << slowest.count() / 1000 << " ms\n";
}

}  // namespace kills_test
