// SPDX-License-Identifier: Apache-2.0
#include "acc/config/schema.hpp"

#include <algorithm>
#include <set>
#include <string>

#include "acc/base/text.hpp"
#include "support/catch.hpp"

namespace schema_test {

using acc::launcher::schema;
using acc::launcher::SettingSpec;

TEST_CASE("schema: every row has a unique name, a sentence, and a default of its kind", "[config]") {
  std::set<std::string_view> names;
  for (const SettingSpec& spec : schema()) {
    INFO(spec.name);
    CHECK(names.insert(spec.name).second);
    CHECK(spec.help.ends_with('.'));
    CHECK(default_value(spec) == acc::launcher::Value::parse(spec.default_value));
    CHECK(acc::launcher::find_setting(spec.name) == &spec);
  }
}

TEST_CASE("schema: every key of a file says which release of accelerate read it first, but for acc's own",
          "[config]") {
  for (const SettingSpec& spec : schema()) {
    INFO(spec.name);
    if ((spec.in_file || spec.in_sagemaker) && spec.name != "preload") {
      const auto numbers = acc::split(spec.since, '.');
      CHECK(numbers.size() == 3);
      CHECK((numbers.front() == "0" || numbers.front() == "1"));
    } else {
      CHECK(spec.since.empty());
    }
  }
  CHECK(acc::launcher::find_setting("num_processes")->since == "0.1.0");
  CHECK(acc::launcher::find_setting("fsdp_version")->since == "1.6.0");
  CHECK(acc::launcher::find_setting("parallelism_config_sp_size")->since == "1.12.0");
}

TEST_CASE("schema: no two settings share a flag or a variable", "[config]") {
  std::set<std::string_view> taken;
  for (const SettingSpec& spec : schema()) {
    for (const acc::launcher::Flag& flag : spec.flags) CHECK(taken.insert(flag.spelling).second);
    if (!spec.pet.empty()) CHECK(taken.insert(spec.pet).second);
    if (!spec.environment.empty()) CHECK(taken.insert(spec.environment).second);
  }
}

TEST_CASE("schema: a key means one setting in its section, and a former key is not a current one",
          "[config]") {
  std::set<std::string> taken;
  for (const SettingSpec& spec : schema()) {
    INFO(spec.name);
    if (!spec.in_file && !spec.in_sagemaker) {
      CHECK(spec.section.empty());
      continue;
    }
    const std::string section(spec.section);
    for (const std::string_view key : spec.former)
      CHECK(taken.insert(section + "." + std::string(key)).second);
    if (!section.empty()) {
      CHECK(taken.insert(section + "." + std::string(file_key(spec))).second);
      CHECK(acc::launcher::find_section_key(section, file_key(spec)) == &spec);
      CHECK(acc::launcher::find_section_key(section, spec.name) == &spec);
      CHECK(acc::launcher::find_setting(section) != nullptr);
    } else if (spec.in_file) {
      CHECK(acc::launcher::find_file_key(file_key(spec)) == &spec);
    }
  }
}

TEST_CASE("schema: a default is allowed by its row", "[config]") {
  for (const SettingSpec& spec : schema()) {
    const acc::launcher::Value preset = default_value(spec);
    if (std::empty(spec.allowed) || !preset.is_string()) continue;
    INFO(spec.name);
    CHECK(std::ranges::find(spec.allowed, preset.get<std::string>()) != spec.allowed.end());
  }
}

TEST_CASE("schema: defaults and implicit values are what their JSON says", "[config]") {
  using acc::launcher::Value;
  for (const SettingSpec& spec : schema()) {
    INFO(spec.name);
    CHECK(default_value(spec) == Value::parse(spec.default_value));
    for (const acc::launcher::Flag& flag : spec.flags)
      CHECK(implicit_value(spec, flag) == Value::parse(flag.implicit_value.value_or("null")));
  }
}

TEST_CASE("schema: holds accelerate 1.15's top-level keys, and acc's own", "[config]") {
  CHECK(acc::launcher::file_keys() == std::vector<std::string>{"command_file",
                                                               "commands",
                                                               "compute_environment",
                                                               "debug",
                                                               "deepspeed_config",
                                                               "distributed_type",
                                                               "downcast_bf16",
                                                               "dynamo_config",
                                                               "enable_cpu_affinity",
                                                               "fp8_config",
                                                               "fsdp_config",
                                                               "gpu_ids",
                                                               "machine_rank",
                                                               "main_process_ip",
                                                               "main_process_port",
                                                               "main_training_function",
                                                               "megatron_lm_config",
                                                               "mixed_precision",
                                                               "mpirun_config",
                                                               "num_machines",
                                                               "num_processes",
                                                               "parallelism_config",
                                                               "preload",
                                                               "rdzv_backend",
                                                               "same_network",
                                                               "tpu_env",
                                                               "tpu_name",
                                                               "tpu_use_cluster",
                                                               "tpu_use_sudo",
                                                               "tpu_vm",
                                                               "tpu_zone",
                                                               "use_cpu"});
}

}  // namespace schema_test
