// SPDX-License-Identifier: Apache-2.0
// The event logs of real jobs.
#include <nlohmann/json.hpp>
#include <sstream>

#include "acc/base/files.hpp"
#include "support/catch.hpp"
#include "support/json_schema.hpp"
#include "support/run.hpp"
#include "support/temporary_folder.hpp"

namespace events_test {

using nlohmann::json;

namespace {

std::vector<json> lines_of(const std::string& text) {
  std::vector<json> lines;
  std::istringstream in(text);
  for (std::string line; std::getline(in, line);) lines.push_back(json::parse(line));
  return lines;
}

}  // namespace

TEST_CASE("cli: the event log of a job that restarts and fails is valid by its schema", "[cli]") {
  const acc::test::TemporaryFolder folder;
  const auto program =
      folder.write("train", "#!/bin/sh\n[ $RANK = 1 ] && echo lost >&2 && exit 7\nexec sleep 60\n");
  std::filesystem::permissions(program, std::filesystem::perms::owner_all);
  const acc::test::Run run =
      acc::test::run({"acc", "run", "--nproc-per-node=2", "--max-restarts=1", "--event-log=events.jsonl",
                      "--event-log-handler=console", "--rdzv-id=job7", "./train"},
                     acc::test::clean_environment(folder.path().string()), "", folder.path().string());
  CHECK(run.code == 7);
  const std::vector<json> lines = lines_of(folder.read("events.jsonl"));
  const acc::test::JsonSchema schema(json::parse(acc::read_file(ACC_SAMPLE_CONFIGS "/events.schema.json")));
  std::vector<std::string> events;
  for (const json& line : lines) {
    CHECK(schema.violation(line).empty());
    CHECK(line["run_id"] == "job7");
    events.push_back(line["event"]);
    CHECK(run.err.find("\"event\":\"" + events.back() + "\"") != std::string::npos);
  }
  CHECK(std::ranges::count(events, "attempt_started") == 2);
  CHECK(std::ranges::count(events, "worker_started") == std::ranges::count(events, "worker_finished"));
  CHECK(std::ranges::count(events, "restarting") == 1);
  REQUIRE(events.back() == "finished");
  CHECK(lines.back()["exit_code"] == 7);
  CHECK(lines.back()["attempt"] == 1);
  CHECK(lines.back()["cause"]["last_words"] == "lost\n");
}

TEST_CASE("cli: the event log says what a job was asked for, and how far its ranks got", "[cli]") {
  const acc::test::TemporaryFolder folder;
  folder.write(
      "train.py",
      "import acc, os, sys\n"
      "with acc.section('data'):\n"
      "  acc.step(samples=8, loss=0.5, global_step=int(os.environ['TORCHELASTIC_RESTART_COUNT']) + 3)\n"
      "sys.exit(5)\n");
  acc::Environment environment = acc::test::clean_environment(folder.path().string());
  environment.set("PYTHONPATH", ACC_TESTS_FOLDER "/../scripts/package");
  environment.set("PYTHONDONTWRITEBYTECODE", "1");
  const acc::test::Run run = acc::test::run({"acc", "run", "--nproc-per-node=1", "--max-restarts=1",
                                             "--event-log=events.jsonl", "train.py", "--api-key", "abc"},
                                            environment, "", folder.path().string());
  CHECK(run.code == 5);
  const std::vector<json> lines = lines_of(folder.read("events.jsonl"));
  const acc::test::JsonSchema schema(json::parse(acc::read_file(ACC_SAMPLE_CONFIGS "/events.schema.json")));
  std::vector<json> progress;
  for (const json& line : lines) {
    CHECK(schema.violation(line).empty());
    if (line["event"] == "progress") progress.push_back(line);
  }
  CHECK(lines[0]["event"] == "job_started");
  CHECK(lines[0]["command"].back() == "***");
  CHECK(lines[0]["settings"]["max_restarts"] == json({{"value", 1}, {"origin", "--max-restarts"}}));
  REQUIRE(progress.size() >= 2);
  CHECK(progress.front()["steps"] == json({3}));
  CHECK(progress.back()["attempt"] == 1);
  CHECK(progress.back()["steps"] == json({4}));
  CHECK(progress.back()["counts_over_restarts"] == json({true}));
  CHECK(progress.back()["samples"] == json({8}));
}

}  // namespace events_test
