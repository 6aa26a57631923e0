// SPDX-License-Identifier: Apache-2.0
#include <csignal>

#include "acc/launch/launch_report.hpp"
#include "support/catch.hpp"

namespace launch_report_cause_test {

using namespace acc;
using namespace acc::launcher;
using std::chrono::milliseconds;
using std::chrono::system_clock;

namespace {

WorkerFailure failed(int rank, int at_ms, std::optional<int> told_s = {}) {
  WorkerFailure failure = {.rank = rank, .time = system_clock::time_point(milliseconds(at_ms))};
  if (told_s) failure.error_file = ErrorFile{.time = system_clock::time_point(milliseconds(*told_s * 1000))};
  return failure;
}

WorkerFailure with_stderr(int rank, const std::string& stderr_tail, ExitStatus status = Exited{1}) {
  return {.rank = rank, .status = status, .stderr_tail = stderr_tail};
}

WorkerFailure wrote(int rank, const ErrorFile& file) {
  WorkerFailure failure = {.rank = rank, .status = Exited{1}, .error_file = file};
  return failure;
}

}  // namespace

TEST_CASE("root_cause: the one that ended first", "[launch]") {
  CHECK(find_root_cause({failed(2, 10'100), failed(0, 10'200)}) == 0);
}

TEST_CASE("root_cause: an earlier error file wins over an earlier end", "[launch]") {
  CHECK(find_root_cause({failed(2, 10'100), failed(0, 12'000, 8)}) == 1);
  CHECK(find_root_cause({failed(2, 10'100, 9), failed(0, 10'200, 8), failed(1, 10'300, 7)}) == 2);
}

TEST_CASE("root_cause: within one second the order of the ends decides", "[launch]") {
  CHECK(find_root_cause({failed(2, 10'900), failed(0, 11'000, 10)}) == 0);
  CHECK(find_root_cause({failed(2, 10'100, 9), failed(0, 10'200, 9)}) == 0);
}

TEST_CASE("root_cause: two exact times are compared as they are", "[launch]") {
  const auto at = [](int rank, int ms) {
    return wrote(rank, {.time = system_clock::time_point(milliseconds(ms)), .exact = true});
  };
  CHECK(find_root_cause({at(2, 10'200), at(0, 10'100)}) == 1);
  CHECK(find_root_cause({at(2, 10'100), at(0, 10'200)}) == 0);
}

TEST_CASE("root_cause: the loss of another worker is the cause only if there is no other", "[launch]") {
  const ErrorFile lost = {.time = system_clock::time_point(milliseconds(1000)), .consequence = true};
  CHECK(find_root_cause({wrote(0, lost), failed(1, 10'200)}) == 1);
  CHECK(find_root_cause({failed(1, 10'200), wrote(0, lost)}) == 0);
  CHECK(find_root_cause({wrote(2, lost), wrote(0, lost)}) == 0);
  CHECK(
      find_root_cause({with_stderr(0,
                                   "RuntimeError: [/pytorch/third_party/gloo/gloo/transport/tcp/pair.cc:547] "
                                   "Connection closed by peer [127.0.0.1]:20398\n"),
                       with_stderr(1, "ValueError: no data\n", Exited{3})}) == 1);
}

TEST_CASE("root_cause: of workers that all lost another, one that was lost is the cause", "[launch]") {
  const auto lost = [](int rank, std::vector<int> ranks) {
    return wrote(rank, {.consequence = true, .lost_ranks = std::move(ranks)});
  };
  CHECK(find_root_cause({lost(0, {2}), lost(1, {0, 2}), lost(2, {})}) == 0);
  CHECK(find_root_cause({lost(1, {2}), lost(0, {2}), lost(2, {})}) == 2);
  CHECK(find_root_cause({lost(1, {2, 3}), failed(0, 10'200), lost(2, {3})}) == 1);
}

TEST_CASE("root_cause: a worker that says it lost another is believed, whatever its words", "[launch]") {
  const std::string words = "Connection closed by peer";
  CHECK(is_consequence(wrote(0, {.message = "no answer from ranks 1, 2 within 30 s", .consequence = true})));
  // An older libacc did not know them.
  CHECK(is_consequence(wrote(0, {.message = words, .consequence = false})));
  CHECK_FALSE(is_consequence(wrote(0, {.message = "no data", .consequence = false})));
}

TEST_CASE("root_cause: where an error file is torn, the end of stderr says whether another was lost",
          "[launch]") {
  const auto torn = [](const std::string& text, const std::string& last_line) {
    WorkerFailure failure = with_stderr(0, last_line);
    failure.error_file = ErrorFile{.message = text, .valid = false};
    return failure;
  };
  for (const char* text : {R"({"message": {"mess)", R"({"message": {"message": "ValueError: \"row)"}) {
    CHECK(is_consequence(torn(text, "Connection closed by peer\n")));
    CHECK_FALSE(is_consequence(torn(text, "ValueError: no data\n")));
  }
  // The error that the file and stderr have told, before a connection was lost.
  const char* told = R"({"message": {"message": "ValueError: row 17\nof 20", "extraInfo": {"py_ca)";
  CHECK_FALSE(
      is_consequence(torn(told, "ValueError: row 17\nof 20\nBrokenPipeError: [Errno 32] Broken pipe\n")));
  CHECK(is_consequence(torn(told, "BrokenPipeError: [Errno 32] Broken pipe\n")));
}

TEST_CASE("root_cause: what is a consequence", "[launch]") {
  CHECK(is_consequence(
      wrote(0, {.message = "DistBackendError: NCCL error: remote process exited or there was a "
                           "network error"})));
  CHECK(is_consequence(
      with_stderr(0, "rank 0, backward: rank 1 ended or was lost: Connection closed by peer\n")));
  // It went on after that.
  CHECK_FALSE(
      is_consequence(with_stderr(0, "retried: Connection reset by peer\nValueError: no data\n  frame\n")));
  CHECK_FALSE(is_consequence(with_stderr(0, "Connection reset by peer\n", Signaled{SIGSEGV})));
  CHECK(is_consequence(with_stderr(0, "Connection reset by peer\n", Signaled{SIGABRT})));
  CHECK_FALSE(is_consequence(with_stderr(0, "")));
}

TEST_CASE("root_cause: an uncaught C++ exception is judged by its what()", "[launch]") {
  const auto aborted = [](const std::string& what) {
    return with_stderr(
        0, "terminate called after throwing an instance of 'c10::DistBackendError'\n  what():  " + what,
        Signaled{SIGABRT});
  };
  const std::string stack =
      "\nException raised from run at ProcessGroupNCCL.cpp:2086:\nframe #0: c10::Error\n";
  CHECK(
      is_consequence(aborted("[Rank 1] watchdog thread terminated with exception: NCCL error: remote process "
                             "exited or there was a network error" +
                             stack)));
  CHECK(is_consequence(aborted("Connection closed by peer\n")));
  CHECK_FALSE(is_consequence(aborted("no data\n")));
  CHECK_FALSE(
      is_consequence(aborted("no data" + stack + "frame #1: on_message(\"Connection closed by peer\")\n")));
}

}  // namespace launch_report_cause_test
