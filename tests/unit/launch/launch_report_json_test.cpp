// SPDX-License-Identifier: Apache-2.0
#include <csignal>

#include "acc/launch/launch_report.hpp"
#include "support/catch.hpp"

namespace launch_report_json_test {

using namespace acc;
using namespace acc::launcher;

TEST_CASE("failure_json: a failure is read as it was written", "[launch]") {
  const std::chrono::system_clock::time_point time(std::chrono::microseconds(1'700'000'000'123'456));
  const WorkerFailure failure = {.rank = 9,
                                 .local_rank = 1,
                                 .pid = 4711,
                                 .host = "node1",
                                 .status = Signaled{SIGKILL, false},
                                 .time = time,
                                 .attempt = 2,
                                 .out_of_memory = true,
                                 .cgroup_memory = CgroupMemory{.limit = 7, .peak = 6},
                                 .xids = std::vector<Xid>{{79, "0000:3b:00"}},
                                 .error_file = ErrorFile{.path = "/log/error.json",
                                                         .message = "m",
                                                         .traceback = "t",
                                                         .time = time,
                                                         .exact = true,
                                                         .consequence = true,
                                                         .lost_ranks = {1, 3}},
                                 .stderr_tail = "line\n\xff\n"};
  const WorkerFailure read = parse_failure(to_json_text(failure));
  CHECK(read.rank == 9);
  CHECK(read.local_rank == 1);
  CHECK(read.pid == 4711);
  CHECK(read.host == "node1");
  CHECK(read.status == failure.status);
  CHECK(read.time == time);
  CHECK(read.attempt == 2);
  CHECK(read.out_of_memory);
  CHECK(read.cgroup_memory == failure.cgroup_memory);
  CHECK(read.xids == failure.xids);
  CHECK(read.error_file == failure.error_file);
  CHECK(read.stderr_tail == "line\n\xef\xbf\xbd\n");  // what is not UTF-8 is marked
}

TEST_CASE("failure_json: an exit code stays one", "[launch]") {
  CHECK(parse_failure(to_json_text({.status = Exited{42}})).status == ExitStatus(Exited{42}));
}

TEST_CASE("failure_json: long texts keep their end", "[launch]") {
  const std::string text = to_json_text({.stderr_tail = std::string(100'000, 'a') + "end"});
  CHECK(text.size() < 20'000);
  CHECK(parse_failure(text).stderr_tail.ends_with("aend"));
}

TEST_CASE("failure_json: invalid text is some failure", "[launch]") {
  CHECK(parse_failure("[1").status == ExitStatus(Exited{1}));
  CHECK(parse_failure(R"({"rank": "x", "host": 3})").status == ExitStatus(Exited{1}));
}

TEST_CASE("failure_json: a time that no clock has is none", "[launch]") {
  const WorkerFailure read = parse_failure(
      R"({"rank": 3, "when": 9223372036854775807, "error_file": {"message": "m", "when": -9223372036854775808}})");
  CHECK(read.time == std::chrono::system_clock::time_point());
  CHECK(read.error_file->time == std::chrono::system_clock::time_point());
  CHECK(read.rank == 3);
}

TEST_CASE("failure_json: a number with a fraction is none of a failure", "[launch]") {
  const WorkerFailure read =
      parse_failure(R"({"rank": 3, "local_rank": 1e300, "when": -9.3e18, "pid": 7.5})");
  CHECK(read.rank == 3);
  CHECK(read.local_rank == 0);
  CHECK(read.pid == 0);
  CHECK(read.time == std::chrono::system_clock::time_point());
}

TEST_CASE("failure_json: the name of another host moves no cursor", "[launch]") {
  CHECK(parse_failure(R"({"host": "a\u001b[2J"})").host == "a\\x1b[2J");
}

}  // namespace launch_report_json_test
