// SPDX-License-Identifier: Apache-2.0
#include "acc/runtime/comm/record.hpp"

#include <stdlib.h>
#include <unistd.h>

#include <chrono>
#include <csignal>
#include <nlohmann/json.hpp>
#include <stdexcept>

#include "acc/base/error.hpp"
#include "acc/base/files.hpp"
#include "acc/runtime/comm/uncaught.hpp"
#include "support/catch.hpp"
#include "support/in_child.hpp"
#include "support/torch_tensor.hpp"

namespace record_test {

namespace {

using nlohmann::json;
using std::chrono::system_clock;

// The content of the error file after `function` ran in a separate process, since a process keeps the role of
// its failure.
template <class Function>
json left_by(Function function) {
  const auto file = acc::test::temporary_folder() / "error.json";
  const int code = acc::test::in_child([&] {
    ::setenv("TORCHELASTIC_ERROR_FILE", file.c_str(), 1);
    function();
    return 0;
  });
  CHECK(code == 0);
  return std::filesystem::exists(file) ? json::parse(acc::read_file(file)) : json();
}

}  // namespace

TEST_CASE("record: an exception of main is written in torch's format, and rethrown", "[runtime]") {
  const auto before =
      std::chrono::floor<std::chrono::seconds>(system_clock::now()).time_since_epoch().count();
  const json failure = left_by([] {
    bool passed = false;
    try {
      acc::record([]() -> int { throw std::runtime_error("no data"); });
    } catch (const std::runtime_error&) {
      passed = true;
    }
    if (!passed) std::abort();
  });
  REQUIRE(failure.contains("message"));
  CHECK(failure["message"]["message"] == "std::runtime_error: no data");
  const json& extra = failure["message"]["extraInfo"];
  CHECK_FALSE(extra.contains("py_callstack"));
  CHECK(std::stoll(extra["timestamp"].get<std::string>()) >= before);
  CHECK(std::stoll(extra["timestamp_us"].get<std::string>()) / 1'000'000 ==
        std::stoll(extra["timestamp"].get<std::string>()));
  CHECK(extra["consequence"] == false);
}

TEST_CASE("record: it returns main's result, and ignores exceptions that are caught", "[runtime]") {
  const json failure = left_by([] {
    const int code = acc::record([] {
      try {
        throw acc::Error({.what = "tried"});
      } catch (const acc::Error&) {
        return 7;
      }
    });
    if (code != 7) std::abort();
  });
  CHECK(failure.is_null());
}

TEST_CASE("record: failures after the loss of another process are consequences", "[runtime]") {
  const json failure = left_by([] {
    acc::write_error_file("rank 0, backward: ranks 1, 2 ended", acc::FailureRole::consequence, {1, 2});
    acc::write_error_file("training failed");
  });
  CHECK(failure["message"]["message"] == "training failed");
  CHECK(failure["message"]["extraInfo"]["consequence"] == true);
  CHECK(failure["message"]["extraInfo"]["lost_ranks"] == json({1, 2}));
}

TEST_CASE("record: an exception of Gloo about a lost peer is a consequence", "[runtime]") {
  const json failure = left_by([] {
    try {
      acc::record([]() -> int { throw std::runtime_error("[pair.cc:547] Connection closed by peer"); });
    } catch (const std::runtime_error&) {  // NOLINT: the file is what counts
    }
  });
  CHECK(failure["message"]["extraInfo"]["consequence"] == true);
  CHECK_FALSE(failure["message"]["extraInfo"].contains("lost_ranks"));
}

TEST_CASE("record: an uncaught exception is written, too", "[runtime]") {
  const json failure = left_by([] {
    std::signal(SIGABRT, [](int) { ::_exit(0); });  // the previous terminate handler ends with abort()
    acc::record_uncaught_exceptions();
    const auto fail = [] { throw acc::Error({.what = "is missing", .where = "data"}); };
    [&]() noexcept { fail(); }();
  });
  CHECK(failure["message"]["message"] == "data: is missing");
}

TEST_CASE("record: an uncaught exception that another process has caused is a consequence", "[runtime]") {
  const json failure = left_by([] {
    std::signal(SIGABRT, [](int) { ::_exit(0); });
    acc::record_uncaught_exceptions();
    acc::detail::explain_uncaught_exceptions(
        [](const std::exception& error) -> std::optional<acc::detail::UncaughtConsequence> {
          return {{.text = std::string("rank 1 was lost: ") + error.what(), .lost_ranks = {1}}};
        });
    const auto fail = [] { throw std::runtime_error("closed"); };
    [&]() noexcept { fail(); }();
  });
  CHECK(failure["message"]["message"] == "rank 1 was lost: closed");
  CHECK(failure["message"]["extraInfo"]["consequence"] == true);
  CHECK(failure["message"]["extraInfo"]["lost_ranks"] == json({1}));
}

TEST_CASE("record: SIGTERM does not change how a process with an uncaught exception ends", "[runtime]") {
  const json failure = left_by([] {
    std::signal(SIGABRT, [](int) {
      std::raise(SIGTERM);
      ::_exit(0);
    });
    acc::record_uncaught_exceptions();
    const auto fail = [] { throw acc::Error({.what = "is missing", .where = "data"}); };
    [&]() noexcept { fail(); }();
  });
  CHECK(failure["message"]["message"] == "data: is missing");
}

}  // namespace record_test
