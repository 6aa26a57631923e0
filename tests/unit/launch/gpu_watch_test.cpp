// SPDX-License-Identifier: Apache-2.0
#include "acc/launch/gpu_watch.hpp"

#include <nlohmann/json.hpp>

#include "support/catch.hpp"

namespace gpu_watch_test {

using namespace acc;
using namespace acc::launcher;
using namespace std::chrono_literals;

namespace {

/// Rank 4 with a child, and rank 5, which has ended.
const JobView kJob = {.ranks = {{.rank = 4, .pid = 60}, {.rank = 5, .pid = 70, .ended = "exit code 0"}}};

ProcessTable processes() {
  ProcessTable table;
  table.add({.pid = 60, .parent = 1});
  table.add({.pid = 61, .parent = 60});
  return table;
}

using Pids = std::vector<pid_t>;

const ProgressNoted kRunning = {{{.rank = 4, .cpu_time = 1s}}};

/// A machine with the GPUs that it is given.
struct Watched {
  explicit Watched(std::optional<std::vector<GpuUse>> gpus)
      : watch(loop, {.job = []() -> const JobView& { return kJob; },
                     .processes = processes,
                     .note = [this](const GpuUseNoted& noted) { notes.push_back(noted); },
                     .query = [gpus = std::move(gpus)] { return gpus; }}) {}

  std::size_t notes_after(const Event& event) {
    watch.report(event);
    loop.restart();
    loop.run();
    return notes.size();
  }

  boost::asio::io_context loop = boost::asio::io_context(1);
  std::vector<GpuUseNoted> notes = {};
  GpuWatch watch;
};

}  // namespace

TEST_CASE("gpu_watch: a GPU belongs to the job if a running rank or its child has a process on it",
          "[launch]") {
  const std::vector<GpuUse> gpus = {{.index = 0, .processes = Pids{9, 61}},
                                    {.index = 1, .processes = Pids{9}},
                                    {.index = 2, .processes = Pids{70}},
                                    {.index = 3, .processes = Pids{60}}};
  const GpuUseNoted noted = gpus_of_job(gpus, kJob, processes());
  REQUIRE(noted.gpus.size() == 2);
  CHECK(noted.gpus[0].use.index == 0);
  CHECK(noted.gpus[0].ranks == std::vector<int>{4});
  CHECK(noted.gpus[1].use.index == 3);
}

TEST_CASE("gpu_watch: in a pid namespace the driver may know the outer pid", "[launch]") {
  const JobView job = {.ranks = {{.rank = 4, .pid = 5060, .pid_inside = 60}}};
  for (const pid_t pid : {5060, 61})
    CHECK(gpus_of_job({{.processes = Pids{pid}}}, job, processes()).gpus.size() == 1);
}

TEST_CASE("gpu_watch: where the driver shows no process, all GPUs that it shows count", "[launch]") {
  const GpuUseNoted noted = gpus_of_job({{.index = 0, .processes = Pids{}}, {.index = 1}}, kJob, processes());
  REQUIRE(noted.gpus.size() == 2);
  CHECK(noted.gpus[0].ranks.empty());
}

TEST_CASE("gpu_watch: the answer survives the way through the pipe", "[launch]") {
  const std::vector<GpuUse> gpus = {{.index = 1,
                                     .percent = 42,
                                     .memory_bytes = 7,
                                     .watts = 1.5,
                                     .joules = 2.5,
                                     .uuid = "GPU-7",
                                     .processes = Pids{3, 4}},
                                    {.index = 2}};
  CHECK(decode_gpu_use(encode(gpus)) == gpus);
  CHECK_FALSE(decode_gpu_use(encode(std::nullopt)));
  CHECK_THROWS_AS(decode_gpu_use(""), nlohmann::json::exception);
}

TEST_CASE("gpu_watch: GPUs are noted with the progress of running ranks", "[launch]") {
  Watched watched(std::vector<GpuUse>{{.index = 3, .percent = 42, .processes = Pids{60}}});
  CHECK(watched.notes_after(AttemptStarted{}) == 0);
  CHECK(watched.notes_after(ProgressNoted{{{.rank = 4}}}) == 0);
  REQUIRE(watched.notes_after(kRunning) == 1);
  CHECK(watched.notes[0].gpus.at(0).use.percent == 42);
  CHECK(watched.notes_after(kRunning) == 2);
}

TEST_CASE("gpu_watch: a driver that fails is asked again", "[launch]") {
  Watched watched(std::nullopt);
  CHECK(watched.notes_after(kRunning) == 0);
  watched.watch.report(kRunning);
  watched.loop.restart();
  CHECK(watched.loop.run() > 0);
}

TEST_CASE("gpu_watch: a machine without GPUs is asked once", "[launch]") {
  Watched watched(std::vector<GpuUse>{});
  CHECK(watched.notes_after(kRunning) == 0);
  watched.watch.report(kRunning);
  watched.loop.restart();
  CHECK(watched.loop.poll() == 0);
}

}  // namespace gpu_watch_test
