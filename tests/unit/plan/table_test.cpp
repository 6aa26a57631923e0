// SPDX-License-Identifier: Apache-2.0
// Every row of the table, through everything that is made from it: the reader and the writer of files, the
// file's schema, assignments, flags, help, completion and the settings of a launch.
#include <algorithm>

#include "acc/config/assign.hpp"
#include "acc/config/file_schema.hpp"
#include "acc/config/write.hpp"
#include "acc/plan/command_line.hpp"
#include "acc/plan/file_settings.hpp"
#include "acc/plan/help.hpp"
#include "acc/plan/man_page.hpp"
#include "acc/plan/settings.hpp"
#include "support/catch.hpp"
#include "support/inputs.hpp"

using acc::ConfigKind;
using acc::ConfigValues;
using acc::Dialect;
using acc::SettingSpec;
using acc::Value;
using acc::ValueType;

namespace {

// A value that the row allows and that is not its default, where there is one.
Value sample(const SettingSpec& spec) {
  switch (spec.type) {
    case ValueType::integer:
      return spec.most ? *spec.most : spec.least.value_or(1) + 2;
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
  return spec.allowed.empty() ? std::string("some text") : std::string(spec.allowed.back());
}

ConfigKind kind_of(const SettingSpec& spec) {
  return spec.in_file ? ConfigKind::cluster : ConfigKind::sagemaker;
}

// A file that holds the row and what every file must hold.
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
  for (const Value& item : value) text += (text.empty() ? "" : ",") + acc::display(item);
  return text;
}

}  // namespace

TEST_CASE("table: what is written is read again, in YAML and in JSON", "[plan]") {
  for (const SettingSpec& spec : acc::schema()) {
    if (!is_in_files(spec)) continue;
    INFO(spec.name);
    const ConfigValues values = file_with(spec);
    for (const char* file : {"c.yaml", "c.json"}) {
      const acc::FileConfig read = acc::parse_config(acc::format_config(values, file), file);
      CHECK(read.values == values);
      CHECK(read.notes.empty());
    }
  }
}

TEST_CASE("table: the schema for editors has each key where files have it", "[plan]") {
  const Value schema = acc::file_schema();
  for (const SettingSpec& spec : acc::schema()) {
    if (!is_in_files(spec)) continue;
    INFO(spec.name);
    Value properties = schema.at(kind_of(spec) == ConfigKind::cluster ? "else" : "then").at("properties");
    if (!spec.section.empty()) properties = properties.at(std::string(spec.section)).at("properties");
    CHECK(properties.at(std::string(file_key(spec))).at("description") == spec.help);
  }
}

TEST_CASE("table: `acc config set` takes every key", "[plan]") {
  for (const SettingSpec& spec : acc::schema()) {
    if (!is_in_files(spec) || !spec.in_file) continue;
    INFO(spec.name);
    ConfigValues values = {{"distributed_type", "NO"}};
    const std::string path =
        (spec.section.empty() ? "" : std::string(spec.section) + ".") + std::string(file_key(spec));
    acc::assign(values, {path + "=" + typed(sample(spec))});
    CHECK(values == file_with(spec));
    CHECK(acc::find_value(values, path) == sample(spec));
  }
}

TEST_CASE("table: a file's value reaches the launch with its line, and a flag wins over it", "[plan]") {
  for (const SettingSpec& spec : acc::schema()) {
    if (!is_in_files(spec) || !spec.in_file || spec.type == ValueType::list) continue;
    INFO(spec.name);
    acc::LaunchInputs given = acc::test::inputs({"train.py"});
    given.file = file_settings(acc::parse_config(acc::format_config(file_with(spec), "c.yaml"), "c.yaml"));
    CHECK(acc::Settings(given)[spec.name].value == sample(spec));
    CHECK(acc::Settings(given).origin(spec.name).starts_with("c.yaml:"));
    for (const acc::Flag& flag : spec.flags) {
      if (flag.means || !exists_in(flag, Dialect::launch)) continue;
      given.command_line = acc::parse_command_line(
          {std::string(flag.spelling), typed(sample(spec)), "train.py"}, Dialect::launch);
      CHECK(acc::Settings(given).origin(spec.name) == flag.spelling);
      CHECK(acc::Settings(given)[spec.name].value == sample(spec));
    }
  }
}

TEST_CASE("table: every flag is in the help and in the completion", "[plan]") {
  const std::string help = launch_help(Dialect::launch, "acc launch", 100, {.all = true});
  const auto flags = acc::completion_flags(Dialect::launch);
  for (const SettingSpec& spec : acc::schema()) {
    for (const acc::Flag& flag : spec.flags) {
      if (!exists_in(flag, Dialect::launch)) continue;
      INFO(flag.spelling);
      CHECK(help.find(flag.spelling) != std::string::npos);
      CHECK(std::ranges::find(flags, flag.spelling, &acc::CompletionFlag::spelling) != flags.end());
    }
  }
}
