// SPDX-License-Identifier: Apache-2.0
#include "acc/control/job_view.hpp"

#include "acc/base/error.hpp"
#include "support/catch.hpp"

namespace job_view_test {

using namespace acc;
using namespace acc::launcher;

TEST_CASE("job_view: is read as it was sent", "[control]") {
  const JobView job{
      .id = "train-10",
      .pid = 10,
      .agent = 11,
      .run_id = "run",
      .attempt = 2,
      .max_restarts = 3,
      .world_size = 8,
      .started = std::chrono::system_clock::time_point(std::chrono::milliseconds(1'700'000'000'123)),
      .command = {"python", "train.py"},
      .folder = "/data",
      .rendezvous = "connected",
      .stops_alone = "torchrun hosts the job",
      .hosts = 2,
      .importing = ImportView{.pid = 14,
                              .pid_inside = 2,
                              .module = "torch",
                              .started = std::chrono::system_clock::time_point(std::chrono::seconds(1))},
      .ranks = {
          {.rank = 4, .local_rank = 0, .pid = 12, .err = {StreamDestination::Kind::file, "/log/stderr.log"}},
          {.rank = 5,
           .local_rank = 1,
           .pid = 13,
           .pid_inside = 3,
           .ended = "exit code 1",
           .out = {StreamDestination::Kind::memory, {}},
           .err = {StreamDestination::Kind::discarded, {}},
           .progress = ProgressView{.steps = 7, .section = "data"}}}};
  CHECK(job_view_from_json(to_json(job)) == job);
  CHECK(rank_view_from_json(to_json(job.ranks[1])) == job.ranks[1]);
  CHECK(to_json(job).at("schema") == 1);
  CHECK(job_view_from_json(to_json(JobView{})) == JobView{});
}

TEST_CASE("job_view: a node of an older acc says that only its part can be stopped", "[control]") {
  nlohmann::json old = to_json(JobView{.id = "train-10", .rendezvous = "connected"});
  old.erase("stops_alone");
  CHECK(job_view_from_json(old).stops_alone == "this node runs an older acc");
  old["rendezvous"] = "";
  CHECK(job_view_from_json(old).stops_alone.empty());
}

TEST_CASE("job_view: the end says what has ended, and what becomes of other nodes", "[control]") {
  JobView job = {.id = "train-10"};
  CHECK(stop_text(job, 143) == "train-10 has ended with exit code 143");
  CHECK(stop_text(job, {}) == "train-10 has ended");
  job.rendezvous = "connected";
  CHECK(stop_text(job, 143) == "train-10 has ended here with exit code 143, and ends on its other nodes");
  job.stops_alone = "torchrun hosts the job";
  CHECK(stop_text(job, 143) ==
        "train-10 has ended here with exit code 143, and may go on on other nodes, since torchrun hosts the "
        "job: "
        "acc stop ends it on each");
}

TEST_CASE("job_view: a log file is found whatever bytes its name has", "[control]") {
  const std::string file = GENERATE("/log/plain", "/log/\xc3\xbc", "/log/\xff\xc3");
  const RankView rank = {.out = {StreamDestination::Kind::file, file}};
  // As the agent sends it.
  const std::string sent = to_json(rank).dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
  CHECK(rank_view_from_json(nlohmann::json::parse(sent)).out.file == file);
}

TEST_CASE("job_view: an invalid reply is an error", "[control]") {
  CHECK_THROWS_AS(job_view_from_json(nlohmann::json::parse("{}")), Error);
  CHECK_THROWS_AS(job_view_from_json(nlohmann::json::parse(R"([1])")), Error);
  CHECK_THROWS_AS(rank_view_from_json(nlohmann::json::parse(R"({"rank":"x"})")), Error);
}

TEST_CASE("job_view: the id has the name of the script and the pid", "[control]") {
  CHECK(job_id({"/usr/bin/python3", "-u", "/home/me/train.py", "--lr", "0.1"}, 42) == "train-42");
  CHECK(job_id({"python", "-u", "-m", "package.train"}, 42) == "package-42");
  CHECK(job_id({"./build/mnist"}, 42) == "mnist-42");
  CHECK(job_id({"python3"}, 42) == "python3-42");
  CHECK(job_id({"my prog/../x y*"}, 42) == "x-y--42");
  CHECK(job_id({std::string(300, 'a')}, 42).size() < 40);
  CHECK(job_id({".hidden.sh"}, 42) == "hidden-42");
  CHECK(job_id({"\xd0\xbe\xd0\xbf\xd1\x8b\xd1\x82.py"}, 42) == "job-42");
  CHECK(job_id({"\xd0\xbe\xd0\xbf 2.py"}, 42) == "2-42");
}

}  // namespace job_view_test
