// SPDX-License-Identifier: Apache-2.0
#include "acc/control/job_table.hpp"

#include <algorithm>

#include "acc/base/text.hpp"
#include "support/catch.hpp"

namespace job_table_test {

using namespace acc;
using namespace acc::launcher;
using namespace std::chrono_literals;

namespace {

JobUsage training() {
  JobUsage usage;
  usage.job = {.id = "train-10",
               .pid = 10,
               .run_id = "none",
               .attempt = 1,
               .max_restarts = 3,
               .started = std::chrono::system_clock::time_point(1000s),
               .command = {"python", "train.py"},
               .ranks = {{.rank = 0, .local_rank = 0, .pid = 12},
                         {.rank = 1, .local_rank = 1, .pid = 13, .ended = "exit code 0"}}};
  usage.ranks = {{.state = "running",
                  .uptime = 65s,
                  .cpu_percent = 99.6,
                  .memory_bytes = std::uint64_t{3} << 29U,
                  .processes = 1,
                  .threads = 12,
                  .gpus = {{.index = 3, .memory_bytes = std::uint64_t{512} << 20U, .use = 87}}},
                 {.state = "exit code 0"}};
  return usage;
}

}  // namespace

TEST_CASE("job_table: a block per job, a line per rank", "[control]") {
  const auto now = std::chrono::system_clock::time_point(1000s + 2h + 7min);
  CHECK(job_table({training()}, now, 200) ==
        "train-10  run id none  up 2h07m  restarts 1 of 3  python train.py\n"
        "  RANK  LOCAL  PID  STATE        UP     CPU%  MEMORY   THREADS  GPU\n"
        "  0     0      12   running      1m05s  100   1.5 GiB  12       3: 87% 512 MiB\n"
        "  1     1      13   exit code 0  -      -     -        -        -\n");
  CHECK(job_table({training(), training()}, now, 31).find("\n\ntrain-10  run id none  up 2h07\u2026\n") !=
        std::string::npos);
}

TEST_CASE("job_table: how far each rank is, where one says so", "[control]") {
  JobUsage usage = training();
  usage.job.ranks.push_back({.rank = 2, .local_rank = 2, .pid = 14});
  usage.ranks.push_back({.state = "running"});
  usage.job.ranks[0].progress = ProgressView{
      .steps = 1204, .step_time = 213456us, .loss = 2.30651, .section = "data", .in_section = 900ms};
  usage.job.ranks[1].progress = ProgressView{.steps = 1203, .section = "forward"};
  const auto now = std::chrono::system_clock::time_point(1000s);
  CHECK(job_table({usage}, now, 200) ==
        "train-10  run id none  up 0s  restarts 1 of 3  python train.py\n"
        "  RANK  LOCAL  PID  STATE        STEP  TIME     LOSS   SECTION  UP     CPU%  MEMORY   THREADS  GPU\n"
        "  0     0      12   running      1204  0.213 s  2.307  data     1m05s  100   1.5 GiB  12       3: "
        "87% 512 MiB\n"
        "  1     1      13   exit code 0  1203  -        -      -        -      -     -        -        -\n"
        "  2     2      14   running      -     -        -      -        -      -     -        -        -\n");

  ProgressView& waiting = *usage.job.ranks[0].progress;
  waiting.collective = "all_reduce";
  waiting.in_collective = 12s;
  CHECK(job_table({usage}, now, 200).find("  all_reduce 12s  ") != std::string::npos);
  waiting.slow_in = "data";
  CHECK(job_table({usage}, now, 200).find("  all_reduce 12s, slow in data  ") != std::string::npos);
  CHECK(job_list({usage})[0]["ranks"][0]["progress"]["collective"] == "all_reduce");
  CHECK(job_list({usage})[0]["ranks"][2]["progress"].is_null());
}

TEST_CASE("job_table: a narrow terminal cuts no character in two", "[control]") {
  JobUsage usage = training();
  usage.job.command = {"python", "\u8a13\u7df4\u8a13\u7df4.py"};
  const auto now = std::chrono::system_clock::time_point(1000s);
  for (const int width : {58, 59, 60, 61, 62}) CHECK(is_utf8(job_table({usage}, now, width)));
}

TEST_CASE("job_table: shows the state of the rendezvous", "[control]") {
  JobUsage usage = training();
  usage.job.rendezvous = "coordinator lost";
  const auto now = std::chrono::system_clock::time_point(1000s);
  CHECK(job_table({usage}, now, 200).find("  restarts 1 of 3  node coordinator lost  python train.py\n") !=
        std::string::npos);
  CHECK(job_list({usage})[0]["rendezvous"] == "coordinator lost");
}

TEST_CASE("job_table: ranks of other nodes are among those of this one, with their hosts", "[control]") {
  JobUsage usage = training();
  usage.job.rendezvous = "connected";
  usage.job.world_size = 6;
  usage.job.ranks[1] = {.rank = 2, .local_rank = 1, .pid = 13};
  usage.other_nodes = {
      .host = "a",
      .nodes = {{.node_rank = 1,
                 .host = "b",
                 .workers = 1,
                 .age = 12s,
                 .ranks = {{.rank = 1, .pid = 7}},
                 .usage = {{.state = "running", .uptime = 1s, .processes = 1, .threads = 2}}},
                {.node_rank = 2, .host = "c", .workers = 2, .problem = "it does not answer"}}};
  const auto now = std::chrono::system_clock::time_point(1000s);
  CHECK(job_table({usage}, now, 200) ==
        "train-10  run id none  up 0s  restarts 1 of 3  node connected  python train.py\n"
        "  RANK  HOST  LOCAL  PID  STATE        UP     CPU%  MEMORY   THREADS  GPU\n"
        "  0     a     0      12   running      1m05s  100   1.5 GiB  12       3: 87% 512 MiB\n"
        "  1     b     0      7    silent 12s   1s     -     0.0 MiB  2        -\n"
        "  2     a     1      13   exit code 0  -      -     -        -        -\n"
        "  2 ranks on c: it does not answer\n"
        "  1 rank on other machines: no acc runs there\n");
  const nlohmann::json job = job_list({usage})[0];
  CHECK(job["ranks"].size() == 2);
  CHECK(job["nodes"][0]["ranks"][0]["state"] == "running");
  CHECK(job["nodes"][0]["age_seconds"] == 12);
  CHECK(job["nodes"][1]["problem"] == "it does not answer");
  CHECK(job["nodes_problem"].is_null());
  usage.other_nodes = {.reason = "torchrun hosts the job"};
  CHECK(job_list({usage})[0]["nodes_problem"] == "torchrun hosts the job");
  CHECK(job_list({usage})[0]["nodes"].empty());
}

TEST_CASE("job_table: another machine is shown all nodes, this one among them", "[control]") {
  JobUsage usage = training();
  usage.other_nodes = {
      .host = "b",
      .node_rank = 1,
      .nodes = {{.node_rank = 0, .host = "a", .workers = 1, .problem = "it does not answer"}}};
  const JobView client = {.id = "train-7", .world_size = 3, .command = {"train.py"}, .hosts = 2};
  JobUsage shown = {.job = client, .other_nodes = other_nodes_from_json(to_json(reports_of(usage)))};
  CHECK(job_table({shown}, {}, 200) ==
        "train-7  run id   up 0s  on 2 hosts  train.py\n"
        "  RANK  HOST  LOCAL  PID  STATE        UP     CPU%  MEMORY   THREADS  GPU\n"
        "  0     b     0      12   running      1m05s  100   1.5 GiB  12       3: 87% 512 MiB\n"
        "  1     b     1      13   exit code 0  -      -     -        -        -\n"
        "  1 rank on a: it does not answer\n");
  usage.job.workers = 2;
  usage.job.world_size = 3;
  usage.job.rendezvous = "connected";
  usage.job.ranks.pop_back();
  usage.ranks.pop_back();
  shown.other_nodes = other_nodes_from_json(to_json(reports_of(usage)));
  CHECK(job_table({shown}, {}, 200)
            .ends_with("  1 rank on a: it does not answer\n"
                       "  1 rank on b: not reported yet\n"));
  CHECK(job_list({shown})[0]["hosts"] == 2);
}

TEST_CASE("job_table: shows what --preload imports, and for how long", "[control]") {
  const auto now = std::chrono::system_clock::time_point(1000s);
  JobUsage usage = training();
  usage.job.importing = ImportView{.pid = 11, .started = now - 1s};
  const std::string before = "  restarts 1 of 3  python train.py\n";
  const std::string after = "\n  RANK  LOCAL";
  CHECK(job_table({usage}, now, 200).find(before + "  starting Python for 1s (--preload, pid 11)" + after) !=
        std::string::npos);
  usage.job.importing->module = "torch";
  CHECK(job_table({usage}, now + 2min, 200)
            .find(before + "  importing torch for 2m01s (--preload, pid 11)" + after) != std::string::npos);
  CHECK(job_list({usage})[0]["importing"]["module"] == "torch");
  CHECK(job_list({training()})[0]["importing"].is_null());
}

TEST_CASE("job_table: the JSON has the same numbers", "[control]") {
  const nlohmann::json list = job_list({training()});
  REQUIRE(list.size() == 1);
  CHECK(list[0]["job"] == "train-10");
  CHECK(list[0]["ranks"][0]["gpus"][0]["use_percent"] == 87);
  CHECK(list[0]["ranks"][0]["threads"] == 12);
  CHECK(list[0]["ranks"][1]["cpu_percent"].is_null());
  CHECK(job_list({}) == nlohmann::json::array());
}

TEST_CASE("job_table: durations are short", "[control]") {
  CHECK(short_duration(12s) == "12s");
  CHECK(short_duration(3min + 5s) == "3m05s");
  CHECK(short_duration(std::chrono::hours(99)) == "4d03h");
  CHECK(short_duration(-1s) == "0s");
}

TEST_CASE("job_table: a command line moves no cursor", "[control]") {
  JobUsage usage = training();
  usage.job.command = {"echo", "\x1b[2J", "a\nb\tc"};
  usage.job.ranks[0].progress = ProgressView{.section = "sync", .collective = "all\nreduce"};
  const std::string table = job_table({usage}, usage.job.started, 200);
  CHECK(table.find("echo \\x1b[2J a\\x0ab\\x09c\n") != std::string::npos);
  CHECK(table.find(" all\\x0areduce ") != std::string::npos);
  CHECK(std::ranges::count(table, '\n') == 4);
}

}  // namespace job_table_test
