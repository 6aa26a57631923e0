// SPDX-License-Identifier: Apache-2.0
#include "acc/plan/settings.hpp"

#include "support/catch.hpp"
#include "support/errors.hpp"
#include "support/inputs.hpp"

namespace settings_test {

using acc::Environment;
using acc::launcher::Dialect;
using acc::launcher::LaunchInputs;
using acc::launcher::Setting;
using acc::launcher::Settings;
using acc::launcher::TruthStyle;
using acc::launcher::Value;
using acc::test::inputs;
namespace key = acc::launcher::key;

TEST_CASE("settings: a flag overrides PET_*, PET_* the file, the file the default", "[plan]") {
  LaunchInputs launch_inputs = inputs({"train.py"});
  CHECK(Settings(launch_inputs).setting(key::max_restarts) == Setting{0, "default"});
  launch_inputs.file = acc::test::file({{"machine_rank", 3}});
  CHECK(Settings(launch_inputs).setting(key::machine_rank) == Setting{3, "job.yaml:1"});
  launch_inputs.environment.set("PET_NODE_RANK", "2");
  CHECK(Settings(launch_inputs).setting(key::machine_rank) == Setting{2, "PET_NODE_RANK"});
  launch_inputs.command_line =
      acc::launcher::parse_command_line({"--machine_rank", "1", "train.py"}, Dialect::launch);
  CHECK(Settings(launch_inputs).setting(key::machine_rank) == Setting{1, "--machine_rank"});
}

TEST_CASE("settings: a null in the file is ignored", "[plan]") {
  LaunchInputs launch_inputs = inputs({"train.py"});
  launch_inputs.file = acc::test::file({{"main_process_ip", nullptr}});
  CHECK_FALSE(Settings(launch_inputs).given(key::main_process_ip));
}

TEST_CASE("settings: PET_* switches are numbers, and empty means on", "[plan]") {
  LaunchInputs launch_inputs = inputs({"train.py"}, Dialect::torchrun);
  for (const auto& [text, expected] :
       std::map<std::string, bool>{{"0", false}, {"1", true}, {"7", true}, {"", true}}) {
    launch_inputs.environment.set("PET_STANDALONE", text);
    CHECK(Settings(launch_inputs)[key::standalone] == expected);
  }
}

TEST_CASE("settings: a PET_* variable is not limited to the flag's choices", "[plan]") {
  LaunchInputs launch_inputs = inputs({"train.py"}, Dialect::torchrun);
  launch_inputs.environment.set("PET_START_METHOD", "bogus");
  CHECK(Settings(launch_inputs).setting(key::start_method) == Setting{"bogus", "PET_START_METHOD"});
}

TEST_CASE("settings: an invalid PET_* variable is an error that names it", "[plan]") {
  LaunchInputs launch_inputs = inputs({"train.py"}, Dialect::torchrun);
  launch_inputs.environment.set("PET_MAX_RESTARTS", "abc");
  CHECK(acc::test::error_of([&] { Settings{launch_inputs}; }) ==
        "PET_MAX_RESTARTS: invalid int value: 'abc'");
}

TEST_CASE("settings: a flag overrides a PET_* variable with the same meaning", "[plan]") {
  LaunchInputs launch_inputs = inputs({"--num_processes", "2", "--main_process_port", "0", "train.py"});
  launch_inputs.environment.set("PET_NPROC_PER_NODE", "4");
  launch_inputs.environment.set("PET_STANDALONE", "1");
  const Settings settings(launch_inputs);
  CHECK_FALSE(settings.given(key::nproc_per_node));
  CHECK_FALSE(settings[key::standalone]);
  CHECK(settings.notes() ==
        std::vector<std::string>{"PET_NPROC_PER_NODE has no effect beside --num_processes",
                                 "PET_STANDALONE has no effect beside --main_process_port"});
}

TEST_CASE("settings: under torchrun's rules a PET_* variable yields to its own flag alone", "[plan]") {
  LaunchInputs launch_inputs = inputs({"--rdzv-backend", "c10d", "train.py"}, Dialect::torchrun);
  launch_inputs.environment.set("PET_STANDALONE", "1");
  CHECK(Settings(launch_inputs)[key::standalone]);
}

TEST_CASE("section_variables: each value is in its variable", "[plan]") {
  acc::launcher::LaunchInputs launch_inputs =
      acc::test::inputs({"--zero_stage", "2", "--zero3_init_flag", "yes", "train.py"});
  launch_inputs.file = acc::test::file({{"gradient_clipping", 1}});
  const acc::launcher::Settings settings(launch_inputs);
  CHECK(section_variables(settings, key::deepspeed_config, TruthStyle::python) ==
        Environment{{"ACCELERATE_DEEPSPEED_ZERO_STAGE", "2"},
                    {"ACCELERATE_DEEPSPEED_ZERO3_INIT", "True"},
                    {"ACCELERATE_GRADIENT_CLIPPING", "1"}});
  CHECK(section_variables(settings, key::deepspeed_config, TruthStyle::lower)
            .get("ACCELERATE_DEEPSPEED_ZERO3_INIT") == "true");
}

TEST_CASE("file_settings: keys of sections stand beside the others, each with its line", "[plan]") {
  const acc::launcher::FileConfig file = acc::launcher::parse_config(
      "distributed_type: FSDP\nfp8_config:\n  backend: TE\nfsdp_config: {version: 2}\n", "job.yaml");
  const auto settings = acc::launcher::file_settings(file);
  CHECK(settings.at(key::distributed_type) == acc::launcher::Setting{"FSDP", "job.yaml:1"});
  CHECK(settings.at(key::fp8_backend) == acc::launcher::Setting{"TE", "job.yaml:3"});
  CHECK(settings.at(key::fsdp_version) == acc::launcher::Setting{2, "job.yaml:4"});
  CHECK(acc::launcher::file_order(file) ==
        std::vector<acc::launcher::SettingId>{key::distributed_type, key::fp8_config, key::fp8_backend,
                                              key::fsdp_config, key::fsdp_version});
}

TEST_CASE("file_settings: a file of a SageMaker job says nothing about accelerate's kinds of training",
          "[plan]") {
  const auto settings = acc::launcher::file_settings(acc::launcher::parse_config(
      "compute_environment: AMAZON_SAGEMAKER\ndistributed_type: DATA_PARALLEL\nec2_instance_type: x\n"
      "iam_role_name: y\n",
      "job.yaml"));
  CHECK(settings.at(key::sagemaker_distributed_type).value == "DATA_PARALLEL");
  CHECK_FALSE(settings.contains(key::distributed_type));
}

namespace {

template <class Name>
concept Names = requires(const Settings& settings, Name name) { settings[name]; };

template <class V, class T>
concept Holds =
    requires(Settings settings, acc::launcher::SettingKey<T> key, V value) { settings.set(key, value, ""); };

}  // namespace

TEST_CASE("settings: a key is no text, and has the type of its values", "[plan]") {
  using acc::launcher::DistributedType;
  STATIC_REQUIRE_FALSE(Names<const char*>);
  STATIC_REQUIRE_FALSE(Names<std::string>);
  STATIC_REQUIRE(Holds<DistributedType, std::optional<DistributedType>>);
  STATIC_REQUIRE_FALSE(Holds<const char*, std::optional<DistributedType>>);
  const Settings settings;
  STATIC_REQUIRE(std::is_same_v<decltype(settings[key::num_machines]), std::int64_t>);
  STATIC_REQUIRE(std::is_same_v<decltype(settings[key::main_process_port]), std::optional<std::int64_t>>);
  CHECK(settings[key::num_machines] == 1);
  CHECK(settings[key::main_process_port] == std::nullopt);
  CHECK(settings[key::distributed_type] == std::nullopt);
  CHECK(settings[key::mixed_precision] == "no");
  CHECK(settings[key::tpu_vm].empty());
}

TEST_CASE("settings: what is set is read again, in every type", "[plan]") {
  Settings settings;
  settings.set(key::use_cpu, true, "a");
  settings.set(key::num_processes, "gpu", "b");
  settings.set(key::distributed_type, acc::launcher::DistributedType::megatron_lm, "c");
  settings.set(key::tpu_vm, {"x", "y"}, "d");
  settings.set(key::fp8_override_linear_precision, {true, false, true}, "e");
  settings.set(key::node_timeout, 2.5, "f");
  settings.set(key::fsdp_reshard_after_forward, "NO_SHARD", "g");
  CHECK(settings[key::use_cpu]);
  CHECK(settings[key::num_processes] == acc::launcher::IntegerOrText("gpu"));
  CHECK(settings[key::distributed_type] == acc::launcher::DistributedType::megatron_lm);
  CHECK(settings.setting(key::distributed_type) == Setting{"MEGATRON_LM", "c"});
  CHECK(settings[key::tpu_vm] == std::vector<std::string>{"x", "y"});
  CHECK(settings[key::fp8_override_linear_precision] == acc::launcher::Truths{true, false, true});
  CHECK(settings[key::node_timeout] == 2.5);
  CHECK(settings[key::fsdp_reshard_after_forward] == acc::launcher::TruthOrText("NO_SHARD"));
  settings.reset(key::use_cpu);
  CHECK(settings.setting(key::use_cpu) == Setting{false, "default"});
}

}  // namespace settings_test
