// SPDX-License-Identifier: Apache-2.0
// Reports of real jobs.
#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "acc/base/files.hpp"
#include "support/catch.hpp"
#include "support/run.hpp"
#include "support/temporary_folder.hpp"

namespace report_test {

using acc::test::Run;
using acc::test::TemporaryFolder;
using Catch::Contains;
using nlohmann::json;

namespace {

Run run_in(const TemporaryFolder& folder, const std::vector<std::string>& words) {
  acc::Environment environment = acc::test::clean_environment(folder.path().string());
  environment.set("PYTHONPATH", ACC_TESTS_FOLDER "/../scripts/package");
  environment.set("PYTHONDONTWRITEBYTECODE", "1");
  environment.set("SECRET_OF_THE_ENVIRONMENT", "hunter3");
  return acc::test::run(words, environment, "", folder.path().string());
}

}  // namespace

TEST_CASE("cli: the report of a job that failed and was restarted", "[cli]") {
  const TemporaryFolder folder;
  // It goes on after step 20, and its first attempt fails after step 30.
  folder.write("train.py",
               "import acc, os, sys\n"
               "first = os.environ['TORCHELASTIC_RESTART_COUNT'] == '0'\n"
               "for step in range(1 if first else 21, 31 if first else 51):\n"
               "  with acc.section('forward'):\n"
               "    acc.step(global_step=step)\n"
               "if first: sys.exit('no <b>space</b> left')\n");
  REQUIRE(run_in(folder, {"acc", "run", "--nproc-per-node=2", "--max-restarts=1", "--event-log=a.jsonl",
                          "train.py", "--token", "hunter2"})
              .code == 0);
  const Run run = run_in(folder, {"acc", "report", "a.jsonl", "-o", "a.html", "--json"});
  CHECK(run.err.empty());
  CHECK(run.code == 0);
  const json figures = json::parse(run.out);
  CHECK(figures["exit_code"] == 0);
  CHECK(figures["restarts"] == 1);
  CHECK(figures["steps"] == 50);
  CHECK(figures["repeated_steps_known"] == true);
  CHECK(figures["attempts"].size() == 2);
  CHECK(figures["gpus"].is_null());
  REQUIRE(figures["failures"].size() == 1);
  CHECK(figures["failures"][0]["last_words"] == "no <b>space</b> left\n");
  double sum = 0;
  for (const auto& [part, seconds] : figures["seconds"].items()) sum += seconds.get<double>();
  CHECK(sum == Approx(figures["wall_s"].get<double>()).epsilon(0.001));

  const std::string log = folder.read("a.jsonl");
  const Run lost = run_in(folder, {"acc", "report", "a.jsonl", "-o", "./a.jsonl"});
  CHECK(lost.code == 2);
  CHECK(lost.err == "acc: -o ./a.jsonl: is one of the logs (name another file)\n");
  CHECK(folder.read("a.jsonl") == log);
  CHECK(run_in(folder, {"acc", "report", "a.jsonl", "./a.jsonl", "--json"}).err ==
        "acc: ./a.jsonl: is given twice\n");

  const std::string page = folder.read("a.html");
  CHECK_THAT(page, Contains("Succeeded after "));
  CHECK_THAT(page, Contains("no &lt;b&gt;space&lt;/b&gt; left"));
  CHECK_THAT(page, Contains("--token"));
  CHECK_THAT(page, !Contains("hunter"));
}

TEST_CASE("cli: what a report cannot be made of is said in one line", "[cli]") {
  const TemporaryFolder folder;
  folder.write("empty.jsonl", "");
  CHECK(run_in(folder, {"acc", "report", "empty.jsonl", "-o", "a.html"}).err ==
        "acc: empty.jsonl: has no event of a job (acc launch --event-log FILE writes one)\n");
  CHECK(run_in(folder, {"acc", "report", "none.jsonl", "-o", "a.html"}).err ==
        "acc: none.jsonl: cannot be read: No such file or directory\n");
  CHECK_THAT(run_in(folder, {"acc", "report", "empty.jsonl"}).err, Contains("-o FILE.html, or --json"));
  CHECK_FALSE(std::filesystem::exists(folder.path() / "a.html"));
}

TEST_CASE("cli: a report names the lines that it passes over", "[cli]") {
  const TemporaryFolder folder;
  folder.write("a.jsonl",
               R"({"schema":1,"event":"finished","time_ns":9,"run_id":"a","host":"b","node_rank":0,)"
               R"("attempt":0,"exit_code":3,"restarts":0})"
               "\n{\"schema\":1,\"ev");
  const Run run = run_in(folder, {"acc", "report", "a.jsonl", "--json"});
  CHECK(run.code == 0);
  CHECK(run.err == "acc: warning: a.jsonl:2: is not an event; passed over\n");
  CHECK(json::parse(run.out)["outcome"] == "Failed with exit code 3 after 0 s.");
}

TEST_CASE("cli: a report prints no terminal control of a log", "[cli]") {
  const TemporaryFolder folder;
  const auto event = [](const char* name, const char* time) {
    return fmt::format(R"({{"schema":1,"event":"{}","time_ns":{},"run_id":"r","host":"h\u001b[31mx",)"
                       R"("node_rank":0,"attempt":0}})"
                       "\n",
                       name, time);
  };
  folder.write("a\x1b[2J.jsonl",
               event("job_started", "1700000050000000000") + event("warning", "1700000001000000000") + "x\n");
  const Run run = run_in(folder, {"acc", "report", "a\x1b[2J.jsonl", "--json"});
  CHECK(run.code == 0);
  CHECK_THAT(run.err, Contains(R"(a\x1b[2J.jsonl:3: is not an event)"));
  CHECK_THAT(run.err, Contains(R"(the clock of h\x1b[31mx was set back)"));
  CHECK_THAT(run.err, !Contains("\x1b"));
}

TEST_CASE("cli: the report has the GPUs of a job in a container, where the driver shows no processes",
          "[cli]") {
  const TemporaryFolder folder;
  folder.write("train.py",
               "import acc, time\n"
               "acc.step()\n"
               "while '\"gpu_use\"' not in open('a.jsonl').read(): time.sleep(0.01)\n");
  acc::Environment environment = acc::test::clean_environment(folder.path().string());
  environment.set("PYTHONPATH", ACC_TESTS_FOLDER "/../scripts/package");
  environment.set("PYTHONDONTWRITEBYTECODE", "1");
  environment.set("LD_LIBRARY_PATH", ACC_FAKE_NVML);
  environment.set("FAKE_NVML_GPUS", "2");
  environment.set("FAKE_NVML_NO_PROCESSES", "1");
  const auto run = [&](const std::vector<std::string>& words) {
    return acc::test::run(words, environment, "", folder.path().string());
  };
  REQUIRE(run({"acc", "run", "--nproc-per-node=2", "--event-log=a.jsonl", "train.py"}).code == 0);
  const json gpus = json::parse(run({"acc", "report", "a.jsonl", "--json"}).out)["gpus"];
  CHECK(gpus["count"] == 2);
  CHECK(gpus["mean_use_percent"] == 42);
  CHECK(gpus["mean_watts"] == 123.4);
}

}  // namespace report_test
