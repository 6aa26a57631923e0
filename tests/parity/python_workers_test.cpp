// SPDX-License-Identifier: Apache-2.0
// Unmodified Python programs started by acc, with the store that acc serves.
#include <algorithm>
#include <nlohmann/json.hpp>

#include "acc/base/text.hpp"
#include "support/catch.hpp"
#include "support/peers.hpp"
#include "support/run.hpp"
#include "support/temporary_folder.hpp"

using acc::Environment;
using acc::test::Run;
using acc::test::TemporaryFolder;

namespace {

Run launch(std::vector<std::string> words, Environment extra = {}) {
  const std::string python = acc::test::peer_python();
  const TemporaryFolder home;
  Environment environment = acc::test::clean_environment(home.path().string());
  environment.set("ONEDNN_MAX_CPU_ISA", "AVX512_CORE_FP16");
  environment.overlay(extra);
  words.insert(words.begin(), "acc");
  words.insert(words.begin() + 2, {"--python", python});
  return acc::test::run(words, environment);
}

bool contains(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

}  // namespace

TEST_CASE("python: a DDP script trains on two processes and on acc's store", "[parity]") {
  const Run run = launch({"launch", "--nproc-per-node", "2", ACC_TESTS_FOLDER "/workers/ddp.py"});
  INFO(run.err);
  CHECK(run.code == 0);
  CHECK(contains(run.out, "attempt 0 rank 0 of 2 trained\n"));
  CHECK(contains(run.out, "attempt 0 rank 1 of 2 trained\n"));
}

TEST_CASE("python: after a crash both workers come up again, each of 12 times", "[parity]") {
  const Run run = launch({"run", "--standalone", "--nproc-per-node", "2", "--max-restarts", "12",
                          ACC_TESTS_FOLDER "/workers/ddp.py"},
                         Environment{{"CRASHES", "12"}});
  INFO(run.err);
  CHECK(run.code == 0);
  CHECK(contains(run.out, "attempt 12 rank 0 of 2 trained\n"));
  CHECK(contains(run.out, "attempt 12 rank 1 of 2 trained\n"));
}

TEST_CASE("python: when the restarts are used up acc exits with the worker's exit code", "[parity]") {
  const Run run =
      launch({"launch", "--nproc-per-node", "2", "--max-restarts", "1", ACC_TESTS_FOLDER "/workers/ddp.py"},
             Environment{{"CRASHES", "99"}});
  INFO(run.err);
  CHECK(run.code == 3);
  CHECK(contains(run.err, "rank 1"));
}

TEST_CASE("python: Accelerator() has the same state under acc and under accelerate", "[parity]") {
  const std::string python = acc::test::peer_python();
  const TemporaryFolder folder;
  const std::string lines =
      "num_processes: 2\nmixed_precision: bf16\ndynamo_config: {dynamo_backend: EAGER}\n";
  folder.write("acc.yaml", "distributed_type: MULTI_CPU\n" + lines);
  // accelerate starts several CPU processes only this way: with a MULTI_CPU file it starts one.
  folder.write("peer.yaml", "distributed_type: MULTI_GPU\nmain_process_port: 0\n" + lines);
  Environment environment = acc::test::clean_environment(folder.path().string());
  environment.set("ONEDNN_MAX_CPU_ISA", "AVX512_CORE_FP16");
  const std::string script = ACC_TESTS_FOLDER "/workers/accelerator_state.py";
  const Run ours = acc::test::run({"acc", "launch", "--python", python, "--config_file", "acc.yaml", script},
                                  environment, "", folder.path().string());
  environment.set("ACCELERATE_USE_CPU", "true");
  const Run theirs =
      acc::test::run({python, "-m", "accelerate.commands.launch", "--config_file", "peer.yaml", script},
                     environment, "", folder.path().string());
  INFO(ours.err << theirs.err);
  REQUIRE(ours.code == 0);
  REQUIRE(theirs.code == 0);
  const auto states = [](const std::string& out) {
    std::vector<std::string> sorted = acc::split(out, '\n');
    std::ranges::sort(sorted);
    return sorted;
  };
  CHECK(states(ours.out).size() == 3);
  CHECK(states(ours.out) == states(theirs.out));
}

TEST_CASE("python: accelerate's Accelerator() knows its rank and its precision", "[parity]") {
  const Run run = launch({"launch", "--cpu", "--num_processes", "2", "--mixed_precision", "bf16",
                          ACC_TESTS_FOLDER "/workers/accelerator_state.py"});
  INFO(run.err);
  REQUIRE(run.code == 0);
  REQUIRE(std::count(run.out.begin(), run.out.end(), '\n') == 2);
  const std::size_t end = run.out.find('\n');
  std::vector<nlohmann::json> states = {nlohmann::json::parse(run.out.substr(0, end)),
                                        nlohmann::json::parse(run.out.substr(end))};
  std::ranges::sort(states, {}, [](const auto& state) { return state["process_index"].template get<int>(); });
  for (int rank = 0; rank < 2; ++rank) {
    const auto& state = states[static_cast<std::size_t>(rank)];
    CHECK(state["distributed_type"] == "MULTI_CPU");
    CHECK(state["num_processes"] == 2);
    CHECK(state["process_index"] == rank);
    CHECK(state["local_process_index"] == rank);
    CHECK(state["device"].get<std::string>().starts_with("cpu"));
    CHECK(state["mixed_precision"] == "bf16");
  }
}
