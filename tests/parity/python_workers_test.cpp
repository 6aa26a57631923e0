// SPDX-License-Identifier: Apache-2.0
// Unmodified Python programs started by acc, with the store that acc serves.
#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <utility>

#include "acc/base/text.hpp"
#include "support/catch.hpp"
#include "support/peers.hpp"
#include "support/run.hpp"
#include "support/temporary_folder.hpp"

namespace python_workers_test {

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

TEST_CASE("python: after each crash both workers come up again", "[parity]") {
  // A start without --preload takes seconds, also that of torch._dynamo, which the first step imports.
  const auto [preload, crashes] = GENERATE(std::pair{"", "1"}, std::pair{"torch,torch._dynamo", "5"});
  const Run run = launch({"run", "--standalone", "--nproc-per-node", "2", "--max-restarts", crashes,
                          ACC_TESTS_FOLDER "/workers/ddp.py"},
                         Environment{{"CRASHES", crashes}, {"ACC_PRELOAD", preload}});
  INFO(run.err);
  CHECK(run.code == 0);
  CHECK(contains(run.out, fmt::format("attempt {} rank 0 of 2 trained\n", crashes)));
  CHECK(contains(run.out, fmt::format("attempt {} rank 1 of 2 trained\n", crashes)));
}

TEST_CASE("python: when the restarts are used up acc exits with the worker's exit code", "[parity]") {
  const Run run =
      launch({"launch", "--nproc-per-node", "2", "--max-restarts", "1", ACC_TESTS_FOLDER "/workers/ddp.py"},
             Environment{{"CRASHES", "99"}, {"ACC_PRELOAD", "torch,torch._dynamo"}});
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
  const auto states = [&](std::vector<std::string> words, const Environment& variables) {
    Environment whole = environment;
    whole.overlay(variables);
    words.push_back(script);
    const Run run = acc::test::run(words, whole, "", folder.path().string());
    INFO(run.err);
    REQUIRE(run.code == 0);
    std::vector<std::string> sorted = acc::split(run.out, '\n');
    std::ranges::sort(sorted);
    CHECK(sorted.size() == 3);
    return sorted;
  };
  const std::vector<std::string> ours = {"acc", "launch", "--python", python, "--config_file", "acc.yaml"};
  const auto expected = states({python, "-m", "accelerate.commands.launch", "--config_file", "peer.yaml"},
                               {{"ACCELERATE_USE_CPU", "true"}});
  CHECK(states(ours, {}) == expected);
  CHECK(states(ours, {{"ACC_PRELOAD", "accelerate"}}) == expected);
}

TEST_CASE("python: accelerate's Accelerator() knows its rank and its precision", "[parity]") {
  const Run run = launch({"launch", "--cpu", "--num_processes", "2", "--mixed_precision", "bf16",
                          ACC_TESTS_FOLDER "/workers/accelerator_state.py"},
                         Environment{{"ACC_PRELOAD", GENERATE("", "accelerate")}});
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

TEST_CASE("python: with --preload the seeds of torch and NumPy differ from worker to worker", "[parity]") {
  const TemporaryFolder folder;
  const std::string script =
      folder.write("seeds.py", "import numpy, torch\nprint(torch.initial_seed(), numpy.random.rand())\n")
          .string();
  const Run run =
      launch({"launch", "--cpu", "--num_processes", "2", "--preload", "torch,numpy.random", script});
  CHECK(run.err.empty());
  const std::vector<std::string> lines = acc::split(run.out, '\n');
  REQUIRE(lines.size() == 3);
  for (const std::size_t word : {0, 1})
    CHECK(acc::split(lines[0], ' ').at(word) != acc::split(lines[1], ' ').at(word));
}

TEST_CASE("python: with --preload torch has its threads and its data loaders", "[parity]") {
  const TemporaryFolder folder;
  const std::string script = folder
                                 .write("loaders.py", R"(import os, sys, torch
from torch.utils.data import DataLoader, Dataset
class Squares(Dataset):
    def __len__(self): return 8
    def __getitem__(self, index): return torch.tensor(index * index), torch.initial_seed()
if __name__ == "__main__":
    torch.manual_seed(3)
    print(torch.rand(1), torch.get_num_threads(), torch.get_num_interop_threads(), torch.cuda.is_available())
    for kind in ("fork", "spawn", "forkserver"):
        # Those that are not forked import torch.
        workers = 2 if kind == "fork" else 1
        for batch in DataLoader(Squares(), batch_size=4, num_workers=workers, multiprocessing_context=kind):
            print(kind, batch)
    print(torch.compile is not None, torch.ones(300, 300) @ torch.ones(300, 300))
)")
                                 .string();
  const auto printed = [&](const std::string& modules) {
    const Run run = launch({"launch", "--cpu", "--num_processes", "1", script}, {{"ACC_PRELOAD", modules}});
    INFO(run.err);
    CHECK(run.code == 0);
    CHECK(run.err.find("workers start without") == std::string::npos);
    return run.out;
  };
  const std::string cold = printed("");
  CHECK(cold.find("forkserver") != std::string::npos);
  CHECK(printed("torch,torch.utils.data") == cold);
}

}  // namespace python_workers_test
