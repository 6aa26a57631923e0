// SPDX-License-Identifier: Apache-2.0
// acc ps, acc logs and acc stop beside a running acc launch.
#include <signal.h>
#include <sys/stat.h>
#include <unistd.h>

#include <fstream>
#include <future>
#include <nlohmann/json.hpp>

#include "acc/base/files.hpp"
#include "support/catch.hpp"
#include "support/run.hpp"
#include "support/temporary_folder.hpp"

namespace control_test {

using acc::test::clean_environment;
using acc::test::Run;
using acc::test::TemporaryFolder;

namespace {

bool has(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

/// Jobs in a separate runtime folder. The commands also see this user's other jobs, so all jobs are named.
class Cli {
 public:
  Cli() {
    ::chmod(folder.path().c_str(), 0700);
    environment.set("XDG_RUNTIME_DIR", folder.path().string());
  }

  Run operator()(std::vector<std::string> arguments) const {
    arguments.insert(arguments.begin(), "acc");
    return acc::test::run(arguments, environment, "", folder.path().string());
  }

  TemporaryFolder folder = {};
  acc::Environment environment = clean_environment(folder.path().string());
};

/// `acc launch` of a script that two workers run; each says hello and then waits.
class RunningScript {
 public:
  explicit RunningScript(const Cli& cli, const std::string& before = "") {
    const std::string fifo = cli.folder.path() / "fifo";
    if (::mkfifo(fifo.c_str(), 0600) != 0) throw std::runtime_error("mkfifo failed");
    const auto script =
        cli.folder.write(name + ".sh", "#!/bin/sh\n" + before + "\necho hello $RANK\necho up > " + fifo +
                                           "\nexec sleep 1000\n");
    ::chmod(script.c_str(), 0700);
    ended = std::async(std::launch::async, [&cli, script] {
      return cli({"launch", "--cpu", "--num_processes", "2", script.string()});
    });
    std::ifstream in(fifo);
    for (int up = 0; up < 2;) {
      std::string line;
      if (std::getline(in, line)) {
        ++up;
      } else {
        in.close();
        in.open(fifo);
      }
    }
  }

  std::string name = "script" + std::to_string(::getpid());
  std::future<Run> ended;
};

}  // namespace

TEST_CASE("cli: a running job is shown, read and stopped by other commands", "[cli]") {
  const Cli acc;
  RunningScript job(acc);

  const Run table = acc({"ps", job.name});
  CHECK(table.code == 0);
  CHECK(table.out.starts_with(job.name + "-"));
  CHECK(has(table.out, "restarts 0 of 0"));
  CHECK(has(table.out, "\n  RANK  LOCAL  PID"));
  const auto list = nlohmann::json::parse(acc({"ps", "--json", job.name}).out);
  REQUIRE(list.size() == 1);
  REQUIRE(list[0]["ranks"].size() == 2);
  CHECK(list[0]["ranks"][1]["threads"] == 1);
  const std::string pid = std::to_string(list[0]["ranks"][1]["pid"].get<int>());

  // As soon as the agent has read it; a job is also named by one of its processes.
  std::string logs;
  while (!has(logs, "[0] hello 0\n") || !has(logs, "[1] hello 1\n")) logs = acc({"logs", pid}).out;
  CHECK(acc({"logs", job.name, "-r", "1"}).out == "hello 1\n");
  CHECK(acc({"logs", "-r", "1", job.name}).out == "hello 1\n");
  using Words = std::vector<std::string>;
  for (const Words& ranks : {Words{"-r", "0,1"}, Words{"--rank=0,1"}, Words{"-r", "0", "-r", "1"}}) {
    Words words = {"logs", job.name};
    words.insert(words.end(), ranks.begin(), ranks.end());
    const Run both = acc(words);
    CHECK(both.code == 0);
    CHECK(has(both.out, "[0] hello 0\n"));
    CHECK(has(both.out, "[1] hello 1\n"));
  }
  CHECK(has(acc({"logs", job.name, "-r", "7"}).err, "rank 7: job " + job.name));

  const Run stacks = acc({"ps", job.name, "--stacks"});
  CHECK(stacks.out.starts_with("rank 0: "));
  CHECK(has(stacks.out, "\nrank 1 (local rank 1, pid " + pid + "): "));

  const Run stop = acc({"stop", job.name});
  CHECK(stop.code == 0);
  CHECK(stop.out.starts_with(job.name + "-"));
  CHECK(stop.out.ends_with(" has ended with exit code 143\n"));
  CHECK(job.ended.get().code == 143);
  CHECK(has(acc({"ps", job.name}).err, job.name + ": no such job is running"));
}

TEST_CASE("cli: who follows logs to a full disk is told, and ends", "[cli]") {
  const Cli acc;
  RunningScript job(acc);
  const std::string program = (acc::program_folder() / "acc").string();
  const Run logs = acc::test::run(
      {"/bin/sh", "-c", "exec \"$0\" logs -f \"$1\" >/dev/full", program, job.name}, acc.environment);
  CHECK(logs.code == 1);
  CHECK(logs.err == "acc: standard output: No space left on device\n");
  CHECK(acc({"stop", job.name}).code == 0);
}

TEST_CASE("cli: stop --now kills workers that ignore signals", "[cli]") {
  const Cli acc;
  RunningScript job(acc, "trap '' TERM");
  CHECK(acc({"stop", "--now", job.name}).out.ends_with(" has ended with exit code 143\n"));
  CHECK(has(job.ended.get().err, "were killed"));
}

TEST_CASE("cli: stop ends a job whose first process is stopped, as by Ctrl-Z", "[cli]") {
  const Cli acc;
  RunningScript job(acc);
  const auto list = nlohmann::json::parse(acc({"ps", "--json", job.name}).out);
  ::kill(list[0]["pid"].get<pid_t>(), SIGSTOP);
  CHECK(acc({"stop", job.name}).out.ends_with(" has ended with exit code 143\n"));
  CHECK(job.ended.get().code == 143);
}

TEST_CASE("cli: an empty name of a job is refused, not taken for the only one", "[cli]") {
  const Cli acc;
  for (const char* command : {"ps", "stop", "logs"}) {
    const Run run = acc({command, ""});
    CHECK(run.code == 2);
    CHECK(has(run.err, "JOB: is empty"));
  }
}

TEST_CASE("cli: an unknown job is one line, exit 2", "[cli]") {
  const Cli acc;
  for (const char* command : {"ps", "stop", "logs"}) {
    const Run run = acc({command, "no-such-job"});
    CHECK(run.code == 2);
    // Other jobs on this machine that do not answer are told before it.
    CHECK(has(run.err, "acc: no-such-job: no such job is running ("));
  }
  CHECK(acc({"ps", "--json", "--stacks", "x"}).code == 2);
}

TEST_CASE("cli: a runtime folder that others can enter is reported and not used", "[cli]") {
  const Cli acc;
  std::filesystem::create_directory(acc.folder.path() / "acc");
  ::chmod((acc.folder.path() / "acc").c_str(), 0777);
  CHECK(has(acc({"ps"}).err, "acc: is open to other users and is not used "));
}

}  // namespace control_test
