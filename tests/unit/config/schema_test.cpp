// SPDX-License-Identifier: Apache-2.0
#include "acc/config/schema.hpp"

#include <iterator>
#include <set>
#include <string>

#include "acc/base/text.hpp"
#include "support/catch.hpp"
#include "support/setting_called.hpp"

namespace schema_test {

using acc::launcher::schema;
using acc::launcher::SettingSpec;

TEST_CASE("schema: every row has a unique name, a sentence, and a default of its kind", "[config]") {
  std::set<std::string_view> names;
  for (const SettingSpec& spec : schema()) {
    INFO(spec.name);
    CHECK(names.insert(spec.name).second);
    CHECK(spec.help.ends_with('.'));
    CHECK(&row_of(spec.id) == &spec);
  }
}

TEST_CASE("schema: every key of a file says which release of accelerate read it first, but for acc's own",
          "[config]") {
  const std::set<std::string_view> additions = {"memory_checkpoints", "preload", "restarts_without_progress",
                                                "watch"};
  for (const SettingSpec& spec : schema()) {
    INFO(spec.name);
    if ((spec.in_file || spec.in_sagemaker) && !additions.contains(spec.name)) {
      const auto numbers = acc::split(spec.since, '.');
      CHECK(numbers.size() == 3);
      CHECK((numbers.front() == "0" || numbers.front() == "1"));
    } else {
      CHECK(spec.since.empty());
    }
  }
  CHECK(row_of(acc::launcher::key::num_processes).since == "0.1.0");
  CHECK(row_of(acc::launcher::key::fsdp_version).since == "1.6.0");
  CHECK(row_of(acc::launcher::key::parallelism_config_sp_size).since == "1.12.0");
}

TEST_CASE("schema: no two settings share a flag or a variable", "[config]") {
  std::set<std::string_view> all_names;
  for (const SettingSpec& spec : schema()) {
    for (const acc::launcher::Flag& flag : spec.flags) CHECK(all_names.insert(flag.spelling).second);
    if (!spec.pet.empty()) CHECK(all_names.insert(spec.pet).second);
    if (!spec.environment.empty()) CHECK(all_names.insert(spec.environment).second);
  }
}

TEST_CASE("schema: a key means one setting in its section, and a former key is not a current one",
          "[config]") {
  std::set<std::string> all_names;
  for (const SettingSpec& spec : schema()) {
    INFO(spec.name);
    if (!spec.in_file && !spec.in_sagemaker) {
      CHECK(spec.section.empty());
      continue;
    }
    const std::string section(spec.section);
    for (const std::string_view key : spec.former)
      CHECK(all_names.insert(section + "." + std::string(key)).second);
    if (!section.empty()) {
      CHECK(all_names.insert(section + "." + std::string(file_key(spec))).second);
      CHECK(acc::launcher::find_section_key(section, file_key(spec)) == &spec);
      CHECK(acc::launcher::find_section_key(section, spec.name) == &spec);
      CHECK(acc::test::setting_called(section).type == acc::launcher::ValueType::section);
    } else if (spec.in_file) {
      CHECK(acc::launcher::find_file_key(file_key(spec)) == &spec);
    }
  }
}

TEST_CASE("schema: a key is its row, and defaults have the row's type", "[config]") {
  using acc::launcher::Value;
  namespace key = acc::launcher::key;
  CHECK(row_of(key::num_machines).name == "num_machines");
  CHECK(row_of(key::export_).name == "export");
  CHECK(row_of(key::fsdp_version).section == "fsdp_config");
  CHECK(row_of(key::fsdp_version).group == "FSDP");
  CHECK(row_of(key::tpu_name).group.empty());
  CHECK(default_value(row_of(key::num_processes)) == nullptr);
  CHECK(default_value(row_of(key::num_machines)) == 1);
  CHECK(default_value(row_of(key::use_cpu)) == false);
  CHECK(default_value(row_of(key::mixed_precision)) == "no");
  CHECK(default_value(row_of(key::monitor_interval)) == 0.1);
  CHECK(default_value(row_of(key::fsdp_config)) == Value::object());
  CHECK(default_value(row_of(key::fp8_override_linear_precision)) == Value::array({false, false, false}));
  // A number is shown as it is written.
  CHECK(default_value(row_of(key::host_timeout)).dump() == "10");
  CHECK(default_value(row_of(key::megatron_lm_gradient_clipping)).dump() == "1.0");
}

TEST_CASE("schema: the value of a flag without an argument is of the row's type", "[config]") {
  const auto implicit = [](const SettingSpec& spec) { return implicit_value(*std::prev(spec.flags.end())); };
  CHECK(implicit(row_of(acc::launcher::key::use_cpu)) == true);
  CHECK(implicit(row_of(acc::launcher::key::tpu_use_cluster)) == false);
  CHECK(implicit(row_of(acc::launcher::key::dry_run)) == "text");
  CHECK(implicit(row_of(acc::launcher::key::log_level)) == "debug");
  CHECK(implicit(row_of(acc::launcher::key::num_machines)) == nullptr);
}

TEST_CASE("schema: an enumeration has a word for each value, which the row allows", "[config]") {
  using acc::launcher::DistributedType;
  CHECK(word_of(DistributedType::no) == "NO");
  CHECK(word_of(DistributedType::multi_neuron) == "MULTI_NEURON");
  CHECK(word_of(DistributedType::xla) == "XLA");
  CHECK(acc::launcher::kEnumWords<DistributedType>.size() ==
        static_cast<std::size_t>(DistributedType::xla) + 1);
  CHECK(acc::launcher::value_of_word<DistributedType>("FSDP") == DistributedType::fsdp);
  CHECK_FALSE(acc::launcher::value_of_word<DistributedType>("fsdp"));
  CHECK(word_of(acc::launcher::NumaBinding::core_complex) == "core-complex");
  CHECK(word_of(acc::launcher::OnHang::kill) == "kill");
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
                                                               "memory_checkpoints",
                                                               "mixed_precision",
                                                               "mpirun_config",
                                                               "num_machines",
                                                               "num_processes",
                                                               "parallelism_config",
                                                               "preload",
                                                               "rdzv_backend",
                                                               "restarts_without_progress",
                                                               "same_network",
                                                               "tpu_env",
                                                               "tpu_name",
                                                               "tpu_use_cluster",
                                                               "tpu_use_sudo",
                                                               "tpu_vm",
                                                               "tpu_zone",
                                                               "use_cpu",
                                                               "watch"});
}

}  // namespace schema_test
