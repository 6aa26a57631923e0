// SPDX-License-Identifier: Apache-2.0
// The preflight of nodes on this machine, which meet in a file.
#include <list>
#include <nlohmann/json.hpp>
#include <thread>

#include "support/catch.hpp"
#include "support/run.hpp"
#include "support/temporary_folder.hpp"

namespace preflight_test {

using acc::test::clean_environment;
using acc::test::Run;
using acc::test::TemporaryFolder;
using nlohmann::json;

namespace {

using Words = std::vector<std::string>;

acc::Environment environment_in(const TemporaryFolder& folder) {
  acc::Environment environment = clean_environment(folder.path().string());
  environment.set("LD_LIBRARY_PATH", ACC_FAKE_NVML);
  environment.set("FAKE_NVML_GPUS", "2");
  return environment;
}

/// What the nodes of a job printed, that of rank 0 first. Each gets its own variables besides the common
/// ones.
std::vector<Run> run_nodes(const TemporaryFolder& folder, const Words& words,
                           const std::vector<std::vector<std::pair<std::string, std::string>>>& variables,
                           const Words& program = {}) {
  std::vector<Run> runs(variables.size());
  std::list<std::thread> threads;
  for (std::size_t node = 0; node < runs.size(); ++node) {
    acc::Environment environment = environment_in(folder);
    for (const auto& [name, value] : variables[node]) environment.set(name, value);
    Words command = {"acc"};
    command.insert(command.end(), words.begin(), words.end());
    const Words meeting = {"--num_machines",   std::to_string(runs.size()),
                           "--nproc_per_node", "2",
                           "--rdzv_backend",   "c10d",
                           "--rdzv-conf",      "store_type=file,join_timeout=60",
                           "--rdzv-endpoint",  (folder.path() / "store").string()};
    command.insert(command.end(), meeting.begin(), meeting.end());
    command.insert(command.end(), program.begin(), program.end());
    threads.emplace_back(
        [=, &runs] { runs[node] = acc::test::run(command, environment, "", environment.get("HOME")); });
  }
  for (std::thread& thread : threads) thread.join();
  std::ranges::stable_sort(runs, std::ranges::greater(), [](const Run& run) {
    return (run.out + run.err).find("preflight of") != std::string::npos || run.out.starts_with("{");
  });
  return runs;
}

}  // namespace

TEST_CASE("cli: acc test --nodes shows one machine, and refuses one with memory errors", "[cli]") {
  const TemporaryFolder folder;
  acc::Environment environment = environment_in(folder);
  const Run healthy = acc::test::run({"acc", "test", "--nodes"}, environment);
  CHECK(healthy.code == 0);
  CHECK(healthy.out.starts_with("preflight of 1 node, "));
  CHECK(healthy.out.find("GPU memory free") != std::string::npos);
  CHECK(healthy.out.find("error:") == std::string::npos);
  environment.set("FAKE_NVML_ECC", "1:3");
  const Run sick = acc::test::run({"acc", "test", "--nodes"}, environment);
  CHECK(sick.code == 1);
  CHECK(sick.out.find(
            "GPU 1 (0000:1c:00.0) has 3 uncorrected memory errors since its driver was loaded (reset it: "
            "`nvidia-smi --gpu-reset -i 1`, or reboot)\n") != std::string::npos);
  CHECK(sick.err.starts_with("acc: the preflight failed: "));
}

TEST_CASE("cli: a preflight looks at the temporary folder where no logs are kept", "[cli]") {
  const TemporaryFolder folder;
  const acc::Environment environment = environment_in(folder);
  const auto healthy = [&](const Words& words) {
    Words command = {"acc"};
    command.insert(command.end(), words.begin(), words.end());
    const Run run = acc::test::run(command, environment);
    INFO(run.out << run.err);
    CHECK(run.code == 0);
    CHECK((run.out + run.err).find("/dev/null") == std::string::npos);
  };
  healthy({"test", "--nodes", "--log-dir", "/dev/null"});
  healthy({"run", "--preflight", "--log-dir", "/dev/null", "--no-python", "true"});
}

TEST_CASE("cli: acc test --nodes --json of three nodes names those that differ", "[cli]") {
  const TemporaryFolder folder;
  const std::vector<Run> runs = run_nodes(
      folder, {"test", "--nodes", "--json"},
      {{{"FAKE_NVML_DRIVER", "550"}}, {{"FAKE_NVML_DRIVER", "550"}}, {{"FAKE_NVML_DRIVER", "535"}}});
  for (const Run& run : runs) CHECK(run.code == 0);
  const json report = json::parse(runs[0].out);
  CHECK(report["schema"] == 1);
  CHECK(report["passed"] == true);
  CHECK(report["nodes"].size() == 3);
  CHECK(report["connections"].size() == 6);
  CHECK(report["transfers"].size() == 6);
  REQUIRE_FALSE(report["findings"].empty());
  const json& finding = report["findings"][0];
  CHECK(finding["check"] == "driver");
  CHECK(finding["severity"] == "warning");
  CHECK(finding["text"].get<std::string>().find("has the driver 535, others 550") != std::string::npos);
  CHECK(runs[1].out.empty());
  CHECK(runs[2].out.empty());
}

TEST_CASE("cli: acc launch --preflight starts the workers of healthy nodes, after the table", "[cli]") {
  const TemporaryFolder folder;
  const auto runs = run_nodes(folder, {"launch", "--preflight", "--no-python"}, {{}, {}},
                              {"/bin/sh", "-c", "echo rank $RANK"});
  INFO(runs[0].err << runs[1].err);
  for (const Run& run : runs) CHECK(run.code == 0);
  CHECK(runs[0].err.find("acc: preflight of 2 nodes, ") != std::string::npos);
  CHECK(runs[0].out.find("rank 0\n") != std::string::npos);
  CHECK(runs[1].out.find("rank 3\n") != std::string::npos);
}

TEST_CASE("cli: acc launch --preflight starts no worker when a node has a GPU less or is slowed down",
          "[cli]") {
  const TemporaryFolder folder;
  const auto runs = run_nodes(folder, {"launch", "--preflight", "--no-python"},
                              {{{"FAKE_NVML_GPUS", "1"}}, {{"FAKE_NVML_SLOWDOWN", "0:64"}}},
                              {"/bin/sh", "-c", "echo rank $RANK"});
  for (const Run& run : runs) {
    INFO(run.err);
    CHECK(run.code == 1);
    CHECK(run.out.empty());
    CHECK(run.err.find("acc: the preflight failed: ") != std::string::npos);
    CHECK(run.err.find("has 1 GPU, others have 2") != std::string::npos);
    CHECK(run.err.find("is slowed down by its hardware: heat") != std::string::npos);
  }
}

}  // namespace preflight_test
