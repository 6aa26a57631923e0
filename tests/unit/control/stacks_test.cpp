// SPDX-License-Identifier: Apache-2.0
#include "acc/control/stacks.hpp"

#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "acc/base/files.hpp"
#include "acc/control/process_table.hpp"
#include "support/catch.hpp"
#include "support/temporary_folder.hpp"

namespace stacks_test {

using namespace acc;
using namespace acc::launcher;
using namespace acc::test;
namespace fs = std::filesystem;

namespace {

std::string stacks_with(const Environment& environment) {
  std::string text;
  const JobView job{
      .ranks = {{.rank = 2, .local_rank = 0, .pid = ::getpid()}, {.rank = 3, .ended = "exit code 1"}}};
  write_stacks(job, {.environment = environment}, [&](std::string_view piece) { text += piece; });
  return text;
}

bool has(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

}  // namespace

TEST_CASE("stacks: reports every rank, and names the missing tool", "[control]") {
  const TemporaryFolder empty;
  const std::string text = stacks_with({{"PATH", empty.path().string()}});
  CHECK(text.starts_with("rank 2: "));
  CHECK(has(text, "rank 3: exit code 1\n"));
  CHECK(has(text, "\nrank 2 (local rank 0, pid " + std::to_string(::getpid()) + "): "));
  CHECK(text.ends_with("\nnative stacks are not shown: gdb is not on PATH\n"));
  CHECK_FALSE(has(text, "Python stacks"));
}

TEST_CASE("stacks: shows what imports for the workers before there are any", "[control]") {
  const TemporaryFolder empty;
  std::string text;
  const JobView job{.importing = ImportView{.pid = ::getpid(), .module = "torch"}};
  write_stacks(job, {.environment = {{"PATH", empty.path().string()}}},
               [&](std::string_view piece) { text += piece; });
  CHECK(text.starts_with("importing torch (--preload, pid " + std::to_string(::getpid()) + ")\n  1 thread "));
}

TEST_CASE("stacks: shows the debugger's output", "[control]") {
  const TemporaryFolder tools;
  const fs::path gdb = tools.write("gdb", "#!/bin/sh\necho 'Thread 1 (LWP 1):'\necho '#0  0x1 in here ()'\n");
  ::chmod(gdb.c_str(), 0700);
  CHECK(has(stacks_with({{"PATH", tools.path().string()}}), "native stacks of rank 2 (local rank 0, pid " +
                                                                std::to_string(::getpid()) +
                                                                "):\n  Thread 1:\n    #0  here\n"));
  tools.write("gdb", "#!/bin/sh\necho 'ptrace: Operation not permitted.'\n");
  CHECK(has(stacks_with({{"PATH", tools.path().string()}}), "):\n  ptrace: Operation not permitted.\n"));
}

TEST_CASE("stacks: asks the flight recorder to dump through its pipe", "[control]") {
  const TemporaryFolder folder;
  const std::string beginning = (folder.path() / "ask_").string();
  const Environment environment = {{"TORCH_NCCL_DEBUG_INFO_PIPE_FILE", beginning}};
  ask_for_flight_record(3, environment);  // no reader
  REQUIRE(::mkfifo((beginning + "3.pipe").c_str(), 0600) == 0);
  const Descriptor listens(::open((beginning + "3.pipe").c_str(), O_RDONLY | O_NONBLOCK | O_CLOEXEC));
  ask_for_flight_record(3, environment);
  char byte = 0;
  CHECK(::read(listens.get(), &byte, 1) == 1);
  folder.write("ask_4.pipe", "a file");
  ask_for_flight_record(4, environment);
  CHECK(folder.read("ask_4.pipe") == "a file");
}

TEST_CASE("stacks: finds NCCL's flight record where the worker writes it", "[control]") {
  const TemporaryFolder folder;
  const std::string beginning = (folder.path() / "trace_").string();
  const Environment environment = {{"TORCH_NCCL_DEBUG_INFO_TEMP_FILE", beginning},
                                   {"HOME", folder.path().string()}};
  CHECK(find_flight_record(987654, environment).empty());
  folder.write("trace_987654", "");
  CHECK(find_flight_record(987654, environment) == folder.path() / "trace_987654");
  folder.write(".cache/torch/comm_lib_trace_rank_987655", "");
  CHECK(find_flight_record(987655, environment).filename() == "comm_lib_trace_rank_987655");
}

namespace {

// An idle process with the name of Python's interpreter.
class FakePython {
 public:
  FakePython(const TemporaryFolder& folder, bool stopped) {
    const fs::path program = folder.path() / "python3";
    if (!fs::exists(program)) fs::copy_file("/bin/sleep", program);
    pid_ = ::fork();
    if (pid_ == 0) {
      ::execl(program.c_str(), "python3", "1000", nullptr);
      ::_exit(127);
    }
    while (fs::read_symlink(fs::path("/proc") / std::to_string(pid_) / "exe") != program) ::sched_yield();
    if (stopped) ::kill(pid_, SIGSTOP);
    while (read_process(pid_)->state != (stopped ? 'T' : 'S')) ::sched_yield();
  }
  ~FakePython() {
    ::kill(pid_, SIGKILL);
    ::waitpid(pid_, nullptr, 0);
  }
  FakePython(const FakePython&) = delete;
  FakePython& operator=(const FakePython&) = delete;
  pid_t pid() const { return pid_; }

 private:
  pid_t pid_ = 0;
};

}  // namespace

TEST_CASE("stacks: ranks that differ come first, native stacks last, and a slow gdb delays no Python stack",
          "[control]") {
  const TemporaryFolder tools;
  const TemporaryFolder programs;
  ::chmod(tools.write("py-spy", "#!/bin/sh\necho python of $3\n").c_str(), 0700);
  ::chmod(tools.write("gdb", "#!/bin/sh\nexec sleep 1000\n").c_str(), 0700);
  const FakePython zero(programs, false);
  const FakePython one(programs, false);
  const FakePython two(programs, true);
  const FakePython three(programs, false);
  JobView job;
  for (const FakePython* python : {&zero, &one, &two, &three}) {
    const int rank = static_cast<int>(job.ranks.size());
    job.ranks.push_back({.rank = rank, .local_rank = rank, .pid = python->pid()});
  }
  std::vector<std::string> pieces;
  write_stacks(job,
               {.environment = {{"PATH", tools.path().string() + ":/usr/bin:/bin"}},
                .limits = {.time = std::chrono::milliseconds(300)}},
               [&](std::string_view piece) { pieces.emplace_back(piece); });
  REQUIRE(pieces.size() == 9);
  CHECK(pieces[0].starts_with("rank 2 differs: stopped, while the other 3 are sleeping in "));
  CHECK(has(pieces[0], "\nrank 0: sleeping in "));
  const int order[] = {2, 0, 1, 3};
  for (std::size_t i = 0; i < 4; ++i) {
    const std::string name =
        "rank " + std::to_string(order[i]) + " (local rank " + std::to_string(order[i]) + ", pid ";
    const std::string pid = std::to_string(job.ranks[static_cast<std::size_t>(order[i])].pid);
    CHECK(pieces[1 + i].starts_with("\n" + name));
    CHECK(has(pieces[1 + i], "  Python stacks:\n    python of " + pid + "\n"));
    CHECK(pieces[5 + i] == "\nnative stacks of " + name + pid + "):\n  gdb took too long\n");
  }
}

TEST_CASE("stacks: when the time is over, no further process is examined, of this rank or another",
          "[control]") {
  const TemporaryFolder tools;
  const TemporaryFolder programs;
  for (const char* tool : {"py-spy", "gdb"})
    ::chmod(tools.write(tool, "#!/bin/sh\necho of a process\n").c_str(), 0700);
  const FakePython one(programs, false);
  const FakePython two(programs, false);
  const JobView job{
      .ranks = {{.rank = 0, .pid = ::getpid()}, {.rank = 1, .local_rank = 1, .pid = one.pid()}}};
  std::string text;
  write_stacks(job,
               {.environment = {{"PATH", tools.path().string() + ":/usr/bin:/bin"}},
                .time_limit = std::chrono::milliseconds(0)},
               [&](std::string_view piece) { text += piece; });
  const auto count = [&](std::string_view part) {
    std::size_t number = 0;
    for (auto at = text.find(part); at != std::string::npos; at = text.find(part, at + 1)) ++number;
    return number;
  };
  CHECK(count("  and 2 more processes, for which there was no time\n") == 2);
  CHECK(count("the other ranks are left out: the time limit of 0 s is over\n") == 2);
  CHECK(count("of a process\n") == 1);  // what gdb says of rank 0
}

TEST_CASE("stacks: where the ranks are in the script comes first, then what the kernel says", "[control]") {
  const TemporaryFolder tools;
  const TemporaryFolder programs;
  const FakePython zero(programs, false);
  const FakePython one(programs, false);
  ::chmod(tools
              .write("py-spy",
                     "#!/bin/sh\n"
                     "echo \"Thread $3 (idle): \\\"MainThread\\\"\"\n"
                     "[ $3 != " +
                         std::to_string(one.pid()) +
                         " ] || { echo '    <module> (/me/a.py:6)'; exit; }\n"
                         "echo '    all_reduce (/lib/python3.11/site-packages/torch/distributed/c.py:1)'\n"
                         "echo '    <module> (/me/a.py:4)'\n")
              .c_str(),
          0700);
  const JobView job{.ranks = {{.rank = 0, .pid = zero.pid()},
                              {.rank = 1, .local_rank = 1, .pid = one.pid()},
                              {.rank = 2, .ended = "exit code 0"}}};
  std::string text;
  write_stacks(job, {.environment = {{"PATH", tools.path().string() + ":/usr/bin:/bin"}}},
               [&](std::string_view piece) { text += piece; });
  CHECK(text.starts_with(
      "rank 2 has ended with exit code 0; rank 1 is at a.py:6; rank 0 waits in all_reduce at "
      "a.py:4\nrank 0: sleeping in "));
  CHECK(has(text, "all_reduce (torch/distributed/c.py:1)"));
  CHECK(text.find("\nrank 1 (local rank 1") < text.find("\nrank 0 (local rank 0"));
}

}  // namespace stacks_test
