// SPDX-License-Identifier: Apache-2.0
#include "acc/notebook/worker.hpp"

#include <ATen/Parallel.h>
#include <stdlib.h>

#include <csignal>
#include <fstream>
#include <iostream>
#include <stdexcept>
#include <thread>

#include "acc/base/error.hpp"
#include "support/catch.hpp"
#include "support/in_child.hpp"
#include "support/temporary_folder.hpp"

namespace worker_test {

using namespace acc;
using namespace acc::detail;
using namespace acc::test;

namespace {

struct Ended {
  int code = 0;
  std::optional<std::string> result = {};
  std::string error_file = {};
};

Ended worker(const WorkerFunction& function) {
  const TemporaryFolder folder;
  const SharedText result;
  const int code = in_child([&] {
    ::setenv("TORCHELASTIC_ERROR_FILE", (folder.path() / "error.json").c_str(), 1);
    ::setenv("OMP_NUM_THREADS", "3", 1);
    return run_worker(function, result);
  });
  return {code, result_in(result), folder.read("error.json")};
}

bool holds(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

}  // namespace

TEST_CASE("worker: what the function returns is the result, also an empty one", "[notebook]") {
  const Ended said = worker([] { return "text"; });
  CHECK(said.code == 0);
  CHECK(said.result == "text");
  CHECK(said.error_file.empty());
  CHECK(worker([] { return ""; }).result == "");
}

TEST_CASE("worker: an exception goes to the error file with its own text", "[notebook]") {
  const Ended thrown = worker([]() -> std::string { throw std::out_of_range("seven"); });
  CHECK(thrown.code == 1);
  CHECK_FALSE(thrown.result);
  CHECK(holds(thrown.error_file, "std::out_of_range: seven"));
  const Ended error = worker([]() -> std::string {
    throw Error({.kind = ErrorKind::rendezvous, .what = "late", .where = "node 2"});
  });
  CHECK(error.code == exit_code(ErrorKind::rendezvous));
  CHECK(holds(error.error_file, "node 2: late"));
  const Ended other = worker([]() -> std::string { throw 7; });
  CHECK(other.code == 1);
  CHECK(holds(other.error_file, "not a std::exception"));
}

TEST_CASE("worker: a function that ends the process has no result", "[notebook]") {
  const Ended ended = worker([]() -> std::string { ::_exit(0); });
  CHECK(ended.code == 0);
  CHECK_FALSE(ended.result);
}

TEST_CASE("worker: what the function writes to a stream with a buffer is there at its end", "[notebook]") {
  const TemporaryFolder folder;
  std::ofstream log(folder.path() / "log");
  std::streambuf* const before = std::clog.rdbuf(log.rdbuf());
  worker([] {
    std::clog << "late";
    return "";
  });
  std::clog.rdbuf(before);
  CHECK(folder.read("log") == "late");
}

TEST_CASE("worker: the function has a thread of its own, the worker's threads, and no SIGPIPE",
          "[notebook]") {
  const auto here = std::this_thread::get_id();
  CHECK(worker([&] { return std::this_thread::get_id() == here ? "same" : "own"; }).result == "own");
  CHECK(worker([] { return std::to_string(at::get_num_threads()); }).result == "3");
  CHECK(worker([] {
          ::raise(SIGPIPE);
          return "alive";
        }).result == "alive");
}

}  // namespace worker_test
