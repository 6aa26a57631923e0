// SPDX-License-Identifier: Apache-2.0
// Tests every row of the table with everything derived from it: reading and writing files, the file's schema,
// assignments, checks, edits, questions, flags, torchrun's variables, the settings of a launch and the
// variables of its workers.
#include <algorithm>
#include <map>

#include "acc/base/error.hpp"
#include "acc/base/text.hpp"
#include "acc/config/assign.hpp"
#include "acc/config/edit.hpp"
#include "acc/config/questions.hpp"
#include "acc/config/schema.hpp"
#include "acc/config/write.hpp"
#include "acc/plan/command_line.hpp"
#include "acc/plan/resolve.hpp"
#include "acc/plan/settings.hpp"
#include "support/catch.hpp"
#include "support/inputs.hpp"

namespace settings_table_test {

using acc::launcher::ConfigKind;
using acc::launcher::ConfigValues;
using acc::launcher::Dialect;
using acc::launcher::SettingSpec;
using acc::launcher::Value;
using acc::launcher::ValueType;

namespace {

// An allowed value of the row, if possible not its default.
Value sample(const SettingSpec& spec) {
  switch (spec.type) {
    case ValueType::integer:
      return spec.max ? *spec.max : spec.min.value_or(1) + 2;
    case ValueType::number:
      return 0.25;
    case ValueType::boolean:
      return default_value(spec) != true;
    case ValueType::word_or_truth:
      return false;
    case ValueType::list:
      return Value::array({"one", "two"});
    case ValueType::truths:
      return Value::array({true, false, true});
    case ValueType::section:
      return Value::object();
    case ValueType::text:
      break;
  }
  return std::empty(spec.allowed) ? std::string("some text") : std::string(spec.allowed.back());
}

ConfigKind kind_of(const SettingSpec& spec) {
  return spec.in_file ? ConfigKind::cluster : ConfigKind::sagemaker;
}

// A file with the row and the required keys.
ConfigValues file_with(const SettingSpec& spec) {
  ConfigValues values = {{"distributed_type", "NO"}};
  if (kind_of(spec) == ConfigKind::sagemaker)
    values.merge(ConfigValues{
        {"compute_environment", "AMAZON_SAGEMAKER"}, {"ec2_instance_type", "x"}, {"iam_role_name", "y"}});
  const std::string key(file_key(spec));
  if (spec.section.empty()) {
    values[key] = sample(spec);
  } else {
    values[std::string(spec.section)] = {{key, sample(spec)}};
  }
  return values;
}

bool is_in_files(const SettingSpec& spec) {
  return (spec.in_file || spec.in_sagemaker) && spec.type != ValueType::section &&
         spec.name != "compute_environment";
}

std::string typed(const Value& value) {
  if (value.is_string()) return value.get<std::string>();
  if (!value.is_array()) return value.dump();
  std::string text;
  for (const Value& item : value) text += (text.empty() ? "" : ",") + acc::launcher::display(item);
  return text;
}

}  // namespace

TEST_CASE("table: written files are read again, in YAML and in JSON", "[plan]") {
  for (const SettingSpec& spec : acc::launcher::schema()) {
    if (!is_in_files(spec)) continue;
    INFO(spec.name);
    const ConfigValues values = file_with(spec);
    for (const char* file : {"c.yaml", "c.json"}) {
      const acc::launcher::FileConfig read =
          acc::launcher::parse_config(acc::launcher::format_config(values, file), file);
      CHECK(read.values == values);
      CHECK(read.notes.empty());
    }
  }
}

TEST_CASE("table: the schema for editors has each key where files have it", "[plan]") {
  const Value schema = acc::launcher::file_schema();
  for (const SettingSpec& spec : acc::launcher::schema()) {
    if (!is_in_files(spec)) continue;
    INFO(spec.name);
    Value properties = schema.at(kind_of(spec) == ConfigKind::cluster ? "else" : "then").at("properties");
    if (!spec.section.empty()) properties = properties.at(std::string(spec.section)).at("properties");
    CHECK(properties.at(std::string(file_key(spec))).at("description") == spec.help);
  }
}

TEST_CASE("table: `acc config set` takes every key", "[plan]") {
  for (const SettingSpec& spec : acc::launcher::schema()) {
    if (!is_in_files(spec) || !spec.in_file) continue;
    INFO(spec.name);
    ConfigValues values = {{"distributed_type", "NO"}};
    const std::string path =
        (spec.section.empty() ? "" : std::string(spec.section) + ".") + std::string(file_key(spec));
    acc::launcher::assign(values, {path + "=" + typed(sample(spec))});
    CHECK(values == file_with(spec));
    CHECK(acc::launcher::find_value(values, path) == sample(spec));
  }
}

TEST_CASE("table: a file's value reaches the launch with its line, and a flag wins over it", "[plan]") {
  for (const SettingSpec& spec : acc::launcher::schema()) {
    if (!is_in_files(spec) || !spec.in_file || spec.type == ValueType::list) continue;
    INFO(spec.name);
    acc::launcher::LaunchInputs launch_inputs = acc::test::inputs({"train.py"});
    launch_inputs.file = file_settings(
        acc::launcher::parse_config(acc::launcher::format_config(file_with(spec), "c.yaml"), "c.yaml"));
    CHECK(acc::launcher::Settings(launch_inputs).setting(spec.id).value == sample(spec));
    CHECK(acc::launcher::Settings(launch_inputs).origin(spec.id).starts_with("c.yaml:"));
    for (const acc::launcher::Flag& flag : spec.flags) {
      if (!flag.needs_argument() || !exists_in(flag, Dialect::launch)) continue;
      launch_inputs.command_line = acc::launcher::parse_command_line(
          {std::string(flag.spelling), typed(sample(spec)), "train.py"}, Dialect::launch);
      CHECK(acc::launcher::Settings(launch_inputs).origin(spec.id) == flag.spelling);
      CHECK(acc::launcher::Settings(launch_inputs).setting(spec.id).value == sample(spec));
    }
  }
}

TEST_CASE("table: a value that the row does not allow is reported with its position", "[plan]") {
  int checked = 0;
  for (const SettingSpec& spec : acc::launcher::schema()) {
    if (!is_in_files(spec) || (spec.type == ValueType::text && std::empty(spec.allowed))) continue;
    INFO(spec.name);
    ConfigValues values = file_with(spec);
    const std::string key(file_key(spec));
    Value& value = spec.section.empty() ? values[key] : values[std::string(spec.section)][key];
    value = Value::object({{"no", "such value"}});
    std::string message;
    try {
      acc::launcher::parse_config(acc::launcher::format_config(values, "c.yaml"), "c.yaml");
    } catch (const acc::Error& error) {
      message = error.what();
    }
    CHECK(message.starts_with("c.yaml:"));
    ++checked;
  }
  CHECK(checked >= 90);
}

TEST_CASE("table: a misspelt key is reported with the nearest one", "[plan]") {
  for (const SettingSpec& spec : acc::launcher::schema()) {
    if (!is_in_files(spec) || !spec.in_file || spec.name == "distributed_type") continue;
    INFO(spec.name);
    const std::string key(file_key(spec));
    // Two keys may differ in a letter; one that is doubled is nearest to its own.
    const std::string misspelt = key.substr(0, 3) + key.substr(2);
    ConfigValues values = {{"distributed_type", "NO"}};
    Value& holder = values[spec.section.empty() ? misspelt : std::string(spec.section)];
    holder = spec.section.empty() ? sample(spec) : Value{{misspelt, sample(spec)}};
    std::string message;
    try {
      const acc::launcher::FileConfig read =
          acc::launcher::parse_config(acc::launcher::format_config(values, "c.yaml"), "c.yaml");
      REQUIRE(read.notes.size() == 1);
      message = to_string(read.notes.front());
    } catch (const acc::Error& error) {
      message = error.what();
    }
    CHECK(message.find("did you mean '" + key + "'?") != std::string::npos);
  }
}

TEST_CASE("table: a file is edited in place, and its comments stay", "[plan]") {
  for (const SettingSpec& spec : acc::launcher::schema()) {
    if (!is_in_files(spec) || !spec.in_file || spec.name == "distributed_type") continue;
    INFO(spec.name);
    const std::string edited =
        acc::launcher::edited_config("# mine\ndistributed_type: 'NO'  # one\n", file_with(spec), "c.yaml");
    CHECK(edited.starts_with("# mine\ndistributed_type: 'NO'  # one\n"));
    CHECK(acc::launcher::parse_config(edited, "c.yaml").values == file_with(spec));
  }
}

TEST_CASE("table: former keys are read as the current ones", "[plan]") {
  int checked = 0;
  for (const SettingSpec& spec : acc::launcher::schema()) {
    for (const std::string_view former : spec.former) {
      INFO(former);
      ConfigValues old = {{"distributed_type", "NO"}};
      old[std::string(spec.section)] = {{former, sample(spec)}};
      CHECK(acc::launcher::parse_config(acc::launcher::format_config(old, "c.yaml"), "c.yaml").values ==
            file_with(spec));
      ++checked;
    }
  }
  CHECK(checked > 2);
}

TEST_CASE("table: torchrun's variables set what they name", "[plan]") {
  for (const SettingSpec& spec : acc::launcher::schema()) {
    if (spec.pet.empty()) continue;
    INFO(spec.pet);
    acc::launcher::LaunchInputs launch_inputs = acc::test::inputs({"train.py"}, Dialect::torchrun);
    launch_inputs.environment.set(std::string(spec.pet), typed(sample(spec)));
    CHECK(acc::launcher::Settings(launch_inputs).setting(spec.id).value == sample(spec));
    CHECK(acc::launcher::Settings(launch_inputs).origin(spec.id) == spec.pet);
  }
}

TEST_CASE("table: workers see every variable of the table", "[plan]") {
  // The settings that enable the variables of each family.
  const std::map<std::string_view, std::vector<std::string>> by_section = {
      {"fsdp_config", {"--use_fsdp"}},
      {"deepspeed_config", {"--use_deepspeed"}},
      {"megatron_lm_config", {"--use_megatron_lm"}},
      {"parallelism_config",
       {"--use_fsdp", "--use_parallelism_config", "--parallelism_config_cp_size=2",
        "--parallelism_config_sp_size=2", "--parallelism_config_sp_seq_length=8"}},
      {"fp8_config", {"--mixed_precision=fp8"}},
  };
  int checked = 0;
  for (const SettingSpec& spec : acc::launcher::schema()) {
    if (spec.environment.empty()) continue;
    INFO(spec.name);
    std::vector<std::string> words = {"--num_processes=2"};
    if (const auto more = by_section.find(spec.section); more != by_section.end())
      words.insert(words.end(), more->second.begin(), more->second.end());
    // Weights that one process loads have to reach the others.
    if (spec.name == "fsdp_sync_module_states") words.emplace_back("--fsdp_cpu_ram_efficient_loading=false");
    // Version 1 has no such answer.
    if (spec.name == "fsdp_reshard_after_forward") words.emplace_back("--fsdp_version=2");
    if (!spec.in_file) words.push_back(std::string(spec.flags.front().spelling) + "=" + typed(sample(spec)));
    words.emplace_back("train.py");
    acc::launcher::LaunchInputs launch_inputs =
        acc::test::inputs(words, Dialect::launch, spec.name == "use_cpu" ? 0 : 2);
    if (spec.in_file) {
      ConfigValues values = file_with(spec);
      values["distributed_type"] = spec.name == "use_cpu" ? "MULTI_CPU" : "MULTI_GPU";
      launch_inputs.file = file_settings(
          acc::launcher::parse_config(acc::launcher::format_config(values, "c.yaml"), "c.yaml"));
    }
    const auto shown = acc::launcher::resolve(launch_inputs).environment.find(spec.environment);
    REQUIRE(shown);
    const bool typed_above = std::ranges::any_of(words, [&](const std::string& word) {
      return !std::empty(spec.flags) && word.starts_with(spec.flags.front().spelling);
    });
    const std::string expected = typed(sample(spec));
    if (!typed_above || !spec.in_file)
      CHECK((acc::to_lower(*shown) == acc::to_lower(expected) || (expected == "true" && *shown == "1")));
    ++checked;
  }
  CHECK(checked > 70);
}

TEST_CASE("table: what a question writes is of the row's type, and among its words", "[plan]") {
  using acc::launcher::QuestionKind;
  for (const acc::launcher::Question& question : acc::launcher::questions()) {
    if (question.key.empty()) continue;
    INFO(question.name);
    const std::size_t dot = question.key.find('.');
    const SettingSpec* spec =
        dot == std::string_view::npos
            ? acc::launcher::find_file_key(question.key, question.file_kind.value_or(ConfigKind::cluster))
            : acc::launcher::find_section_key(question.key.substr(0, dot), question.key.substr(dot + 1));
    REQUIRE(spec != nullptr);
    const bool offers_numbers = std::ranges::all_of(
        question.choices,
        [](const acc::launcher::Choice& choice) { return choice.value.is_number_integer(); });
    if (spec->type == ValueType::integer)
      CHECK((question.kind == QuestionKind::integer ||
             (question.kind == QuestionKind::menu && offers_numbers)));
    if (spec->type == ValueType::number) CHECK(question.kind == QuestionKind::number);
    if (spec->type == ValueType::boolean) CHECK(question.kind == QuestionKind::yes_no);
    for (const acc::launcher::Choice& choice : question.choices) {
      if (question.kind != QuestionKind::menu || !choice.value.is_string() || std::empty(spec->allowed))
        continue;
      CHECK(std::ranges::find(spec->allowed, choice.value.get<std::string>()) != spec->allowed.end());
    }
  }
}

}  // namespace settings_table_test
