// SPDX-License-Identifier: Apache-2.0
#include "acc/plan/resolve.hpp"

#include "support/catch.hpp"
#include "support/errors.hpp"
#include "support/inputs.hpp"

using acc::Dialect;
using acc::LaunchInputs;
using acc::LaunchPlan;
using acc::resolve;
using acc::Streams;
using acc::test::error_of;
using acc::test::inputs;

namespace {

std::string resolve_error(const std::vector<std::string>& words, Dialect dialect = Dialect::launch) {
  return error_of([&] { resolve(inputs(words, dialect)); });
}

}  // namespace

TEST_CASE("resolve: torchrun's rules run Python unbuffered, accelerate's plain jobs do not", "[plan]") {
  CHECK(resolve(inputs({"train.py"}, Dialect::torchrun)).worker_command ==
        std::vector<std::string>{"/usr/bin/python3", "-u", "train.py"});
  CHECK(resolve(inputs({"train.py"})).worker_command ==
        std::vector<std::string>{"/usr/bin/python3", "train.py"});
}

TEST_CASE("resolve: torchrun's rules add nothing of accelerate's", "[plan]") {
  CHECK(resolve(inputs({"train.py"}, Dialect::torchrun)).environment.empty());
}

TEST_CASE("resolve: a program that cannot be started is a problem of the plan, for a dry run to show",
          "[plan]") {
  const LaunchPlan plan = resolve(inputs({"missing.py"}));
  REQUIRE(plan.problems.size() == 1);
  CHECK(plan.problems[0].where == "missing.py");
}

TEST_CASE("resolve: output and limits are taken from their flags", "[plan]") {
  const LaunchPlan plan =
      resolve(inputs({"--tee", "0:1", "-r", "2", "--log-dir", "logs", "--local-ranks-filter", "1",
                      "--max-restarts", "3", "--shutdown-timeout", "0.5", "train.py"},
                     Dialect::torchrun));
  CHECK(plan.output.tee.of(0) == Streams::out);
  CHECK(plan.output.redirects.of(5) == Streams::err);
  CHECK(plan.output.log_dir == "logs");
  CHECK(plan.output.local_ranks_filter == std::vector<int>{1});
  CHECK(plan.max_restarts == 3);
  CHECK(plan.shutdown_timeout == std::chrono::milliseconds(500));
  CHECK(resolve(inputs({"--log-dir", "/dev/null", "train.py"})).output.no_logs);
}

TEST_CASE("resolve: a hang is watched for when a time is given", "[plan]") {
  CHECK(resolve(inputs({"train.py"})).hang == acc::HangPlan{});
  const LaunchPlan plan =
      resolve(inputs({"--hang-timeout", "2.5", "--on-hang=restart", "--hang_watch", "output", "train.py"},
                     Dialect::torchrun));
  CHECK(plan.hang == acc::HangPlan{std::chrono::milliseconds(2500), acc::OnHang::restart, false});
  CHECK(plan.output.observed);
  CHECK(error_of([] {
          resolve(inputs({"--on-hang", "kill", "train.py"}));
        }) == "--on-hang: needs to know when a job counts as hung (--hang-timeout SECONDS)");
  CHECK(error_of([] {
          resolve(inputs({"--hang-timeout", "-1", "train.py"}));
        }) == "--hang-timeout: must be a number of seconds, or 0 for never");
}

TEST_CASE("resolve: virtual local ranks share out the visible devices", "[plan]") {
  LaunchInputs given =
      inputs({"--virtual-local-rank", "--nproc-per-node", "2", "train.py"}, Dialect::torchrun);
  CHECK(resolve(given).device_of_rank == std::vector<std::string>{"0", "1"});
  given.environment.set("CUDA_VISIBLE_DEVICES", "4, 7");
  CHECK(resolve(given).device_of_rank == std::vector<std::string>{"4", "7"});
  given.environment.set("CUDA_VISIBLE_DEVICES", "4");
  CHECK(error_of([&] {
          resolve(given);
        }).starts_with("--virtual-local-rank: 2 workers, but CUDA_VISIBLE_DEVICES='4'"));
}

TEST_CASE("resolve: isolated workers see one GPU each, of those that gpu_ids select", "[plan]") {
  using Devices = std::vector<std::string>;
  const std::vector<std::string> words = {"--isolate-gpus", "--num_processes", "2", "train.py"};
  CHECK(resolve(inputs(words, Dialect::launch, 4)).device_of_rank == Devices{"0", "1"});
  CHECK_FALSE(resolve(inputs(words, Dialect::launch, 4)).virtual_local_rank);
  LaunchInputs given =
      inputs({"--isolate-gpus", "--gpu_ids", "2,0", "--num_processes", "2", "train.py"}, Dialect::launch, 4);
  CHECK(resolve(given).device_of_rank == Devices{"2", "0"});
  given.environment.set("CUDA_VISIBLE_DEVICES", "3,2,1");
  CHECK(resolve(given).device_of_rank == Devices{"1", "3"});
  CHECK(resolve(given).environment.get("CUDA_VISIBLE_DEVICES") == "1,3");
  CHECK(error_of([&] { resolve(inputs(words, Dialect::launch, 1)); }) ==
        "--isolate-gpus: 2 workers, but this machine has 1 GPUs");
}

TEST_CASE("resolve: what cannot be is refused, naming the flag", "[plan]") {
  CHECK(resolve_error({"--num_processes", "1"})
            .starts_with("the following arguments are required: training_script"));
  CHECK(resolve_error({"-m", "--no_python", "x"}).starts_with("-m and --no_python exclude each other"));
  CHECK(resolve_error({"--max-restarts", "-1", "train.py"}) == "--max-restarts: must be a number from 0 on");
  CHECK(resolve_error({"--shutdown-timeout", "-1", "train.py"}) ==
        "--shutdown-timeout: must be a number of seconds from 0 on");
}
