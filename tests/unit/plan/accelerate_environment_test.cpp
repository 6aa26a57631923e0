// SPDX-License-Identifier: Apache-2.0
#include "acc/plan/accelerate_environment.hpp"

#include "support/catch.hpp"
#include "support/errors.hpp"
#include "support/inputs.hpp"

namespace accelerate_environment_test {

using acc::Environment;
using acc::launcher::accelerate_environment;
using acc::launcher::Dialect;
using acc::launcher::DistributedType;
using acc::launcher::JobShape;
using acc::launcher::Launcher;
using acc::launcher::LaunchInputs;
using acc::launcher::Settings;
using acc::test::error_of;
using acc::test::inputs;

namespace {

Environment environment_of(const std::vector<std::string>& words, const JobShape& shape) {
  const LaunchInputs launch_inputs = inputs(words);
  return accelerate_environment(launch_inputs, shape, Settings(launch_inputs));
}

// On large machines it takes milliseconds to count the cores.
int count_nothing() {
  FAIL("the cores are counted");
  return 0;
}

std::string threads_of(const LaunchInputs& launch_inputs, int nproc) {
  Settings settings(launch_inputs);
  return thread_environment(launch_inputs, JobShape{.nproc_per_node = nproc}, settings)
      .get("OMP_NUM_THREADS", "none");
}

}  // namespace

TEST_CASE("accelerate_environment: a plain job has the variables of accelerate 1.15", "[plan]") {
  CHECK(environment_of({"train.py"}, {}) ==
        Environment{{"ACCELERATE_DYNAMO_BACKEND", "NO"},
                    {"ACCELERATE_DYNAMO_MODE", "default"},
                    {"ACCELERATE_DYNAMO_USE_DYNAMIC", "False"},
                    {"ACCELERATE_DYNAMO_USE_FULLGRAPH", "False"},
                    {"ACCELERATE_DYNAMO_USE_REGIONAL_COMPILATION", "False"},
                    {"ACCELERATE_MIXED_PRECISION", "no"},
                    {"ACCELERATE_USE_CPU", "False"}});
}

TEST_CASE("accelerate_environment: a CPU job says so and tunes OpenMP", "[plan]") {
  const Environment environment = environment_of({"train.py"}, {.use_cpu = true});
  CHECK(environment.get("ACCELERATE_USE_CPU") == "True");
  CHECK(environment.get("KMP_AFFINITY") == "granularity=fine,compact,1,0");
  CHECK(environment.get("KMP_BLOCKTIME") == "1");
}

TEST_CASE("accelerate_environment: flags reach their variables", "[plan]") {
  const Environment environment = environment_of({"--debug", "--mixed_precision", "bf16", "--dynamo_backend",
                                                  "inductor", "--enable_cpu_affinity", "train.py"},
                                                 {});
  CHECK(environment.get("ACCELERATE_DEBUG_MODE") == "true");
  CHECK(environment.get("ACCELERATE_MIXED_PRECISION") == "bf16");
  CHECK(environment.get("ACCELERATE_DYNAMO_BACKEND") == "INDUCTOR");
  CHECK(environment.get("ACCELERATE_CPU_AFFINITY") == "1");
}

TEST_CASE("accelerate_environment: Megatron-LM's settings may stand beside FSDP's", "[plan]") {
  const Environment environment =
      environment_of({"--use_fsdp", "--use_megatron_lm", "train.py"},
                     {.launcher = Launcher::elastic, .distributed_type = DistributedType::fsdp});
  CHECK(environment.contains("ACCELERATE_USE_FSDP"));
  CHECK(environment.contains("ACCELERATE_USE_MEGATRON_LM"));
}

TEST_CASE("accelerate_environment: gpu_ids become the mask of the device's kind", "[plan]") {
  const auto mask = [](DistributedType type) {
    return environment_of({"--gpu_ids", "0,2", "train.py"},
                          {.launcher = Launcher::elastic, .distributed_type = type});
  };
  CHECK(mask(DistributedType::multi_gpu).get("CUDA_VISIBLE_DEVICES") == "0,2");
  CHECK(mask(DistributedType::multi_npu).get("ASCEND_RT_VISIBLE_DEVICES") == "0,2");
  CHECK_FALSE(mask(DistributedType::multi_xpu).contains("CUDA_VISIBLE_DEVICES"));
  CHECK_FALSE(environment_of({"--gpu_ids", "all", "train.py"}, {}).contains("CUDA_VISIBLE_DEVICES"));
}

TEST_CASE("accelerate_environment: an exported variable that a default replaces is noted", "[plan]") {
  const auto notes = [](const Environment& exported, std::vector<std::string> words = {}) {
    words.emplace_back("train.py");
    LaunchInputs launch_inputs = inputs(words);
    launch_inputs.environment.overlay(exported);
    const Settings settings(launch_inputs);
    return notes_on_replaced(launch_inputs, settings, accelerate_environment(launch_inputs, {}, settings));
  };
  CHECK(notes({}).empty());
  CHECK(notes({{"ACCELERATE_MIXED_PRECISION", "bf16"}}) ==
        std::vector<std::string>{
            "ACCELERATE_MIXED_PRECISION=bf16 has no effect: the workers get no, the default; "
            "--mixed-precision/--mixed_precision changes it"});
  CHECK(notes({{"ACCELERATE_USE_CPU", "true"}}).size() == 1);
  CHECK(notes({{"ACCELERATE_USE_CPU", "0"}, {"ACCELERATE_DYNAMO_BACKEND", "no"}}).empty());
  CHECK(notes({{"ACCELERATE_MIXED_PRECISION", "bf16"}}, {"--mixed_precision", "fp16"}).empty());
  CHECK(notes({{"ACCELERATE_USE_CPU", "true"}, {"LOCAL_RANK", "0"}}).empty());
  CHECK(notes({{"ACCELERATE_MIXED_PRECISION", "bf16"}, {"ACCELERATE_DYNAMO_BACKEND", "NO"}}).empty());
}

TEST_CASE("accelerate_environment: gpu_ids that this machine lacks are refused where they would be used",
          "[plan]") {
  const auto refusal = [](const JobShape& shape) {
    const LaunchInputs launch_inputs = inputs({"--gpu_ids", "7", "train.py"}, Dialect::launch, 4);
    return error_of([&] { accelerate_environment(launch_inputs, shape, Settings(launch_inputs)); });
  };
  CHECK(refusal({}).starts_with("--gpu_ids: this machine has no GPU 7"));
  CHECK(refusal({.use_cpu = true}) == "no error");
  CHECK(refusal({.launcher = Launcher::elastic, .distributed_type = DistributedType::multi_xpu}) ==
        "no error");
}

TEST_CASE("accelerate_environment: the allowed cores are divided among the workers", "[plan]") {
  CHECK(threads_of(inputs({"train.py"}), 4) == "4");
  CHECK(threads_of(inputs({"train.py"}), 5) == "3");
  CHECK(threads_of(inputs({"train.py"}), 64) == "1");
  CHECK(threads_of(inputs({"--num_cpu_threads_per_process", "7", "train.py"}), 4) == "7");
}

TEST_CASE("accelerate_environment: an inherited number of threads stays", "[plan]") {
  LaunchInputs launch_inputs = inputs({"train.py"});
  launch_inputs.environment.set("OMP_NUM_THREADS", "3");
  launch_inputs.allowed_cores = count_nothing;
  CHECK(threads_of(launch_inputs, 4) == "3");
  launch_inputs.environment.set("OMP_NUM_THREADS", "4,2");
  CHECK(threads_of(launch_inputs, 4) == "4,2");
  launch_inputs.allowed_cores = [] { return 16; };
  for (const char* unset : {"", "0", "-3"}) {
    launch_inputs.environment.set("OMP_NUM_THREADS", unset);
    CHECK(threads_of(launch_inputs, 4) == "4");
  }
}

TEST_CASE("accelerate_environment: torchrun's rules give one thread for two or more workers", "[plan]") {
  LaunchInputs launch_inputs = inputs({"train.py"}, Dialect::torchrun);
  launch_inputs.allowed_cores = count_nothing;
  CHECK(threads_of(launch_inputs, 1) == "none");
  CHECK(threads_of(launch_inputs, 2) == "1");
  for (const auto* inherited : {"5", "0", ""}) {
    launch_inputs.environment.set("OMP_NUM_THREADS", inherited);
    CHECK(threads_of(launch_inputs, 2) == "none");
  }
}

}  // namespace accelerate_environment_test
