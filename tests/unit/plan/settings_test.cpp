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

TEST_CASE("settings: a flag overrides PET_*, PET_* the file, the file the default", "[plan]") {
  LaunchInputs given = inputs({"train.py"});
  CHECK(Settings(given)["max_restarts"] == Setting{0, "default"});
  given.file = acc::test::file({{"machine_rank", 3}});
  CHECK(Settings(given)["machine_rank"] == Setting{3, "job.yaml:1"});
  given.environment.set("PET_NODE_RANK", "2");
  CHECK(Settings(given)["machine_rank"] == Setting{2, "PET_NODE_RANK"});
  given.command_line =
      acc::launcher::parse_command_line({"--machine_rank", "1", "train.py"}, Dialect::launch);
  CHECK(Settings(given)["machine_rank"] == Setting{1, "--machine_rank"});
}

TEST_CASE("settings: a null in the file is ignored", "[plan]") {
  LaunchInputs given = inputs({"train.py"});
  given.file = acc::test::file({{"main_process_ip", nullptr}});
  CHECK_FALSE(Settings(given).given("main_process_ip"));
}

TEST_CASE("settings: PET_* switches are numbers, and empty means on", "[plan]") {
  LaunchInputs given = inputs({"train.py"}, Dialect::torchrun);
  for (const auto& [text, expected] :
       std::map<std::string, bool>{{"0", false}, {"1", true}, {"7", true}, {"", true}}) {
    given.environment.set("PET_STANDALONE", text);
    CHECK(Settings(given).truth("standalone") == expected);
  }
}

TEST_CASE("settings: a PET_* variable is not limited to the flag's choices", "[plan]") {
  LaunchInputs given = inputs({"train.py"}, Dialect::torchrun);
  given.environment.set("PET_START_METHOD", "bogus");
  CHECK(Settings(given)["start_method"] == Setting{"bogus", "PET_START_METHOD"});
}

TEST_CASE("settings: an invalid PET_* variable is an error that names it", "[plan]") {
  LaunchInputs given = inputs({"train.py"}, Dialect::torchrun);
  given.environment.set("PET_MAX_RESTARTS", "abc");
  CHECK(acc::test::error_of([&] { Settings{given}; }) == "PET_MAX_RESTARTS: invalid int value: 'abc'");
}

TEST_CASE("settings: a flag overrides a PET_* variable with the same meaning", "[plan]") {
  LaunchInputs given = inputs({"--num_processes", "2", "--main_process_port", "0", "train.py"});
  given.environment.set("PET_NPROC_PER_NODE", "4");
  given.environment.set("PET_STANDALONE", "1");
  const Settings settings(given);
  CHECK_FALSE(settings.given("nproc_per_node"));
  CHECK_FALSE(settings.truth("standalone"));
  CHECK(settings.notes() ==
        std::vector<std::string>{"PET_NPROC_PER_NODE has no effect beside --num_processes",
                                 "PET_STANDALONE has no effect beside --main_process_port"});
}

TEST_CASE("settings: under torchrun's rules a PET_* variable yields to its own flag alone", "[plan]") {
  LaunchInputs given = inputs({"--rdzv-backend", "c10d", "train.py"}, Dialect::torchrun);
  given.environment.set("PET_STANDALONE", "1");
  CHECK(Settings(given).truth("standalone"));
}

TEST_CASE("section_variables: each value is in its variable", "[plan]") {
  acc::launcher::LaunchInputs given =
      acc::test::inputs({"--zero_stage", "2", "--zero3_init_flag", "yes", "train.py"});
  given.file = acc::test::file({{"gradient_clipping", 1}});
  const acc::launcher::Settings settings(given);
  CHECK(section_variables(settings, "deepspeed_config", TruthStyle::python) ==
        Environment{{"ACCELERATE_DEEPSPEED_ZERO_STAGE", "2"},
                    {"ACCELERATE_DEEPSPEED_ZERO3_INIT", "True"},
                    {"ACCELERATE_GRADIENT_CLIPPING", "1"}});
  CHECK(section_variables(settings, "deepspeed_config", TruthStyle::lower)
            .get("ACCELERATE_DEEPSPEED_ZERO3_INIT") == "true");
}

TEST_CASE("file_settings: keys of sections stand beside the others, each with its line", "[plan]") {
  const acc::launcher::FileConfig file = acc::launcher::parse_config(
      "distributed_type: FSDP\nfp8_config:\n  backend: TE\nfsdp_config: {version: 2}\n", "job.yaml");
  const auto settings = acc::launcher::file_settings(file);
  CHECK(settings.at("distributed_type") == acc::launcher::Setting{"FSDP", "job.yaml:1"});
  CHECK(settings.at("fp8_backend") == acc::launcher::Setting{"TE", "job.yaml:3"});
  CHECK(settings.at("fsdp_version") == acc::launcher::Setting{2, "job.yaml:4"});
  CHECK(acc::launcher::file_order(file) == std::vector<std::string>{"distributed_type", "fp8_config",
                                                                    "fp8_backend", "fsdp_config",
                                                                    "fsdp_version"});
}

}  // namespace settings_test
