// SPDX-License-Identifier: Apache-2.0
#include "acc/launch/failure_text.hpp"

#include <csignal>
#include <cstdlib>
#include <ctime>

#include "support/catch.hpp"

using namespace acc;

namespace {

WorkerFailure failure(ExitStatus status) {
  return {.rank = 5,
          .local_rank = 1,
          .pid = 1234,
          .host = "node7",
          .status = status,
          .when = std::chrono::system_clock::time_point(std::chrono::milliseconds(1'700'000'000'042))};
}

bool has(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

}  // namespace

TEST_CASE("failure_text: names rank, process, host and end", "[launch]") {
  CHECK(summarize(failure(Exited{5})) ==
        "rank 5 (local rank 1, pid 1234) on host node7 failed with exit code 5");
  CHECK(has(summarize(failure(Signaled{SIGSEGV, true})), "ended by signal 11 (SIGSEGV, core dumped)"));
}

TEST_CASE("failure_text: SIGKILL is blamed on memory only with evidence", "[launch]") {
  WorkerFailure killed = failure(Signaled{SIGKILL});
  CHECK(has(summarize(killed), "from outside"));
  CHECK_FALSE(has(summarize(killed), "killed by the kernel"));
  killed.out_of_memory = true;
  CHECK(has(summarize(killed), "killed by the kernel for memory"));
}

TEST_CASE("failure_text: a block with time, error file and last words", "[launch]") {
  WorkerFailure one = failure(Exited{1});
  one.attempt = 2;
  one.last_words = "first\nsecond\n";
  one.error_file = ErrorFile{
      .path = "/logs/error.json", .message = "ValueError: no", .traceback = "Trace\nValueError: no\n"};
  const std::string text = failure_text(one);
  CHECK(text.starts_with("acc: rank 5 "));
  CHECK(has(text, "attempt: 2\n"));
  CHECK(has(text, ".042"));
  CHECK(has(text, "  error file: /logs/error.json\n  | Trace\n  | ValueError: no\n"));
  CHECK(has(text, "  last lines of its stderr:\n  | first\n  | second\n"));
  CHECK(text.ends_with('\n'));
}

TEST_CASE("failure_text: an error file that is none is told so and shown", "[launch]") {
  WorkerFailure one = failure(Exited{1});
  one.error_file = ErrorFile{.path = "/e", .message = "half {", .valid = false};
  CHECK(has(failure_text(one), "(not the expected JSON; its text follows)\n  | half {\n"));
}

TEST_CASE("failure_text: what is not known is left out", "[launch]") {
  const std::string text = failure_text(failure(Exited{1}));
  CHECK_FALSE(has(text, "error file"));
  CHECK_FALSE(has(text, "last lines"));
}

TEST_CASE("failure_text: ranks are named, long runs shortened", "[launch]") {
  CHECK(name_ranks({3}) == "rank 3");
  CHECK(name_ranks({0, 2, 3}) == "ranks 0, 2, 3");
  CHECK(name_ranks({0, 1, 2, 3, 5, 7, 8, 9}) == "ranks 0-3, 5, 7-9");
}
