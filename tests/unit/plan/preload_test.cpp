// SPDX-License-Identifier: Apache-2.0
#include "acc/plan/preload.hpp"

#include "acc/plan/resolve.hpp"
#include "support/catch.hpp"
#include "support/errors.hpp"
#include "support/inputs.hpp"

namespace preload_test {

using namespace acc;
using namespace acc::launcher;
using namespace acc::test;
using Words = std::vector<std::string>;

namespace {

LaunchInputs inputs_of(Words words, const std::string& program, Dialect dialect = Dialect::torchrun) {
  words.push_back(program);
  LaunchInputs launch_inputs = inputs(words, dialect);
  launch_inputs.file_kind = files({{"./a.out", FileKind::executable},
                                   {"train.py", FileKind::other},
                                   {"train_$local_rank.py", FileKind::other},
                                   {"/dev/fd/63", FileKind::stream},
                                   {"/usr/bin/gdb", FileKind::executable},
                                   {"/usr/bin/python3", FileKind::executable}});
  return launch_inputs;
}

LaunchPlan plan_of(Words words, const std::string& program = "train.py") {
  words.insert(words.begin(), {"--nproc-per-node", "2"});
  return resolve(inputs_of(std::move(words), program));
}

}  // namespace

TEST_CASE("preload: modules come from the flag in both dialects, from a variable, and from the file",
          "[plan]") {
  CHECK(plan_of({"--preload", "torch, my.data"}).preload == Words{"torch", "my.data"});
  CHECK(resolve(inputs_of({"--preload=torch"}, "train.py", Dialect::launch)).preload == Words{"torch"});
  LaunchInputs launch_inputs = inputs_of({}, "train.py", Dialect::launch);
  launch_inputs.file[acc::launcher::key::preload] = {"numpy", "job.yaml:3"};
  CHECK(resolve(launch_inputs).preload == Words{"numpy"});
  launch_inputs.environment.set("ACC_PRELOAD", "torch");
  CHECK(resolve(launch_inputs).preload == Words{"torch"});
  launch_inputs.environment.set("ACC_PRELOAD", "");
  CHECK(resolve(launch_inputs).preload.empty());
}

TEST_CASE("preload: what is not the name of a module is refused", "[plan]") {
  const auto refusal = [](const char* text) { return error_of([&] { plan_of({"--preload", text}); }); };
  CHECK(
      refusal("torch,") ==
      "--preload: '' is not the name of a module (names are separated by commas, as in torch,transformers)");
  for (const char* text : {"to rch", "torch/nn", "torch.", "1torch", "a;b"}) {
    INFO(text);
    CHECK(refusal(text).find("is not the name of a module") != std::string::npos);
  }
  CHECK(plan_of({"--preload", "_a1.bé"}).preload.size() == 1);
}

TEST_CASE("preload: the flag is refused for what Python does not run or can read only once", "[plan]") {
  const auto refusal = [](Words words, const std::string& program) {
    words.insert(words.end(), {"--preload", "torch"});
    return error_of([&] { resolve(inputs_of(words, program)); });
  };
  CHECK(refusal({}, "./a.out") == "--preload: ./a.out is not a program for Python (leave out the flag)");
  CHECK(refusal({"--no-python"}, "./a.out") ==
        "--preload: ./a.out is not a program for Python (leave out the flag)");
  CHECK(refusal({}, "/dev/fd/63") == "--preload: /dev/fd/63 can be read only once (leave out the flag)");
}

TEST_CASE("preload: the flag is refused where workers run different programs", "[plan]") {
  const auto refusal = [](Words words, const std::string& program) {
    return error_of([&] { resolve(inputs_of(std::move(words), program)); });
  };
  const std::string differs = " differs from worker to worker (leave out the flag)";
  CHECK(refusal({"--nproc-per-node", "2", "--preload", "torch"}, "train_$local_rank.py") ==
        "--preload: train_$local_rank.py" + differs);
  CHECK(refusal({"--nproc-per-node", "2", "--preload", "torch", "-m"}, "m$local_rank") ==
        "--preload: m$local_rank" + differs);
  CHECK(refusal({"--preload", "torch"}, "train_$local_rank.py") == "no error");
}

TEST_CASE("preload: a file or a variable that fits not every program has no effect there", "[plan]") {
  LaunchInputs launch_inputs = inputs_of({}, "./a.out");
  launch_inputs.environment.set("ACC_PRELOAD", "torch");
  const LaunchPlan plan = resolve(launch_inputs);
  CHECK(plan.preload.empty());
  CHECK(plan.notes == Words{"preload (ACC_PRELOAD) has no effect: ./a.out is not a program for Python"});
}

TEST_CASE("preload: a rank that is wrapped or has the terminal starts as a program of its own", "[plan]") {
  const LaunchPlan wrapped = plan_of({"--preload", "torch", "--wrap-rank", "1:gdb --args"});
  CHECK(is_preloaded(wrapped, 0));
  CHECK_FALSE(is_preloaded(wrapped, 1));
  const LaunchPlan attached = plan_of({"--preload", "torch", "--attach", "0"});
  CHECK_FALSE(is_preloaded(attached, 0));
  CHECK(is_preloaded(attached, 1));
  CHECK_FALSE(is_preloaded(plan_of({}), 0));
}

TEST_CASE("preload: modules are imported with the variables that all workers of all attempts share",
          "[plan]") {
  LaunchInputs launch_inputs = inputs_of({"--nproc-per-node", "2", "--preload", "torch"}, "train.py");
  launch_inputs.environment.set("RANK", "7");
  launch_inputs.environment.set("FOO", "bar");
  const PreloadEnvironment environment = preload_environment(resolve(launch_inputs));
  CHECK(environment.shared.get("FOO") == "bar");
  CHECK(environment.shared.get("OMP_NUM_THREADS") == "1");
  CHECK(environment.shared.get("LOCAL_WORLD_SIZE") == "2");
  CHECK_FALSE(environment.shared.contains("RANK"));
  for (const char* name : {"RANK", "LOCAL_RANK", "WORLD_SIZE", "MASTER_ADDR", "MASTER_PORT",
                           "TORCHELASTIC_RESTART_COUNT", "TORCHELASTIC_ERROR_FILE"}) {
    INFO(name);
    CHECK(std::ranges::find(environment.per_worker, name) != environment.per_worker.end());
  }
  CHECK(std::ranges::find(environment.per_worker, "OMP_NUM_THREADS") == environment.per_worker.end());
}

}  // namespace preload_test
