// SPDX-License-Identifier: Apache-2.0
// `acc test`, started as a user starts it.
#include <sched.h>

#include <cstdio>
#include <nlohmann/json.hpp>

#include "support/catch.hpp"
#include "support/in_child.hpp"
#include "support/run.hpp"
#include "support/skip.hpp"
#include "support/temporary_folder.hpp"

namespace acc_test_test {

namespace {

acc::test::Run acc_test(std::vector<std::string> arguments) {
  const acc::test::TemporaryFolder home;
  arguments.insert(arguments.begin(), {"acc", "test", "--cpu", "--num_processes", "2"});
  return acc::test::run(arguments, acc::test::clean_environment(home.path().string()), "",
                        home.path().string());
}

// Returns false if this user is not allowed to.
bool enter_network_without_loopback() {
  return ::unshare(CLONE_NEWNET) == 0 || ::unshare(CLONE_NEWUSER | CLONE_NEWNET) == 0;
}

}  // namespace

TEST_CASE("acc test: --json is one object with every check, pair, size and rank", "[selftest]") {
  const auto run = acc_test({"--json"});
  INFO(run.err);
  REQUIRE(run.code == 0);
  const auto report = nlohmann::json::parse(run.out);
  CHECK(report["passed"] == true);
  CHECK(report["num_processes"] == 2);
  std::vector<std::string> names;
  for (const auto& check : report["checks"]) {
    INFO(check.dump());
    names.push_back(check["name"]);
    CHECK(check["passed"] == true);
    CHECK(check["seconds"] > 0);
  }
  CHECK(names == std::vector<std::string>{"state", "process order", "functions by process", "splitting",
                                          "trigger", "collectives", "random state", "sharded loading",
                                          "shuffled loading", "dispatched loading", "dispatched shuffling",
                                          "batch sampler", "data seed", "training parity", "bf16 training",
                                          "fp16 training", "accumulation"});
  REQUIRE(report["links"].size() == 1);
  CHECK(report["links"][0]["ranks"] == nlohmann::json{0, 1});
  CHECK(report["links"][0]["latency_seconds"] > 0);
  CHECK(report["all_reduce"].size() == 8);
  CHECK(report["all_reduce"].back()["bus_bytes_per_second"] > 0);
  REQUIRE(report["matmul"].size() == 2);
  CHECK(report["matmul"][1]["rank"] == 1);
  REQUIRE(report["memory"].size() == 2);
  CHECK(report["memory"][1]["bytes_per_second"] > 0);
  CHECK(report["hosts"].size() == 2);
  CHECK(report["torch"].get<std::string>().starts_with("2."));
}

TEST_CASE("acc test: a rank that does not begin is named within the time limit", "[selftest]") {
  const auto run = acc_test({"--time-limit", "2", "--json", "--wrap-rank", "1:sh -c 'kill -STOP $$'"});
  INFO(run.err);
  CHECK(run.code == 1);
  CHECK(run.err.find("acc-selftest: 'join' did not end within 2 s: rank 1 has not begun") !=
        std::string::npos);
  const auto report = nlohmann::json::parse(run.out);
  CHECK(report["passed"] == false);
  CHECK(report["error"] == "'join' did not end within 2 s: rank 1 has not begun");
}

TEST_CASE("acc test: without a network it ends, and reports that all ranks are running", "[selftest]") {
  const int result = acc::test::in_child([] {
    if (!enter_network_without_loopback()) return acc::test::kSkipped;
    const auto run = acc_test({"--time-limit", "3"});
    const bool is_named =
        run.err.find("they cannot reach each other through the network") != std::string::npos;
    if (!is_named) std::fprintf(stderr, "%s", run.err.c_str());
    return is_named && run.code == 1 ? 0 : 1;
  });
  if (result == acc::test::kSkipped) {
    acc::test::skip("no network namespace can be made");
    return;
  }
  CHECK(result == 0);
}

TEST_CASE("acc test: a slow rank is named", "[selftest]") {
  // MKL_CBWR=COMPATIBLE makes rank 1 multiply with the instructions that every processor has.
  const auto run = acc_test({"--json", "--wrap-rank", "1:env MKL_CBWR=COMPATIBLE"});
  INFO(run.err);
  REQUIRE(run.code == 0);
  const auto report = nlohmann::json::parse(run.out);
  if (report["matmul"][1]["seconds"] < 1.5 * report["matmul"][0]["seconds"].get<double>()) {
    acc::test::skip("this processor's LibTorch does not take MKL_CBWR");
    return;
  }
  REQUIRE(report["outliers"].size() >= 1);
  CHECK(report["outliers"][0].get<std::string>().starts_with("rank 1 on "));
}

TEST_CASE("acc test: wrong arguments are an error of one line and exit code 2", "[selftest]") {
  const auto run = acc_test({"--time-limit", "soon"});
  CHECK(run.code == 2);
  CHECK(run.err == "acc: --time-limit soon: must be a positive number of seconds\n");
  CHECK(acc_test({"train.py"}).err == "acc: acc test train.py: accepts no program: it runs acc-selftest\n");
}

TEST_CASE("acc test: --html is a page of what was measured, also beside --json", "[selftest]") {
  const acc::test::TemporaryFolder folder;
  const auto page = folder.path() / "page.html";
  const auto run = acc_test({"--json", "--html", page.string()});
  INFO(run.err);
  REQUIRE(run.code == 0);
  CHECK(nlohmann::json::parse(run.out)["passed"] == true);
  const std::string text = folder.read("page.html");
  for (const char* part : {"acc test: 2 processes on 1 host", "Passed: 17 of 17 checks.",
                           "Ranks 0 and 1 reach each other in ", "class=\"level memory\"", "fp16 training"}) {
    INFO(part);
    CHECK(text.find(part) != std::string::npos);
  }
}

TEST_CASE("acc test: the page of --html names a rank that does not begin", "[selftest]") {
  const acc::test::TemporaryFolder folder;
  const auto run = acc_test({"--time-limit", "2", "--html", (folder.path() / "page.html").string(),
                             "--wrap-rank", "1:sh -c 'kill -STOP $$'"});
  CHECK(run.code == 1);
  CHECK(folder.read("page.html").find("&#39;join&#39; did not end within 2 s: rank 1 has not begun") !=
        std::string::npos);
}

TEST_CASE("acc test: --dry_run starts nothing and shows what would be started", "[selftest]") {
  const auto run = acc_test({"--dry_run"});
  CHECK(run.code == 0);
  CHECK(run.out.find("--expect-processes 2 --time-limit 60") != std::string::npos);
}

}  // namespace acc_test_test
