// SPDX-License-Identifier: Apache-2.0
#include "acc/config/write.hpp"

#include "acc/config/document.hpp"
#include "support/catch.hpp"
#include "support/errors.hpp"
#include "support/recordings.hpp"
#include "support/temporary_folder.hpp"

namespace write_test {

using acc::launcher::ConfigValues;
using acc::launcher::format_config;
using acc::launcher::Value;

TEST_CASE("write: nulls and empty sections are left out, empty lists stay", "[config]") {
  const ConfigValues values = {
      {"b", nullptr}, {"c", Value::object()}, {"d", Value::array()}, {"a", "no"}, {"e", 1.0}};
  CHECK(format_config(values, "x.yaml") == "a: 'no'\nd: []\ne: 1.0\n");
  CHECK(format_config(values, "x.json") == "{\n  \"a\": \"no\",\n  \"d\": [],\n  \"e\": 1.0\n}\n");
}

TEST_CASE("write: a text that is not UTF-8 is refused: the file could not be read", "[config]") {
  const std::string file = GENERATE("x.yaml", "x.json");
  const auto error = [&](const ConfigValues& values) {
    return acc::test::error_of([&] { format_config(values, file); });
  };
  CHECK(error({{"a", "\xff"}}) == "a: is not UTF-8, and cannot be written in a config file");
  CHECK(error({{"s", {{"x", {"b", "\xc3"}}}}}) == "x: is not UTF-8, and cannot be written in a config file");
  CHECK(error({{"a", "\xc3\xa9"}}) == "no error");
}

TEST_CASE("write: JSON is ASCII with two blanks of indent and an end of line", "[config]") {
  CHECK(format_config({{"a", "\xc3\xa9"}, {"s", {{"x", 1}}}}, "x.json") ==
        "{\n  \"a\": \"\\u00e9\",\n  \"s\": {\n    \"x\": 1\n  }\n}\n");
}

TEST_CASE("write: what accelerate wrote is written again byte for byte", "[config]") {
  for (const std::string& name : acc::test::recordings("config_")) {
    const auto yaml = acc::test::recording(name).at("yaml");
    if (yaml.is_null()) continue;
    INFO(name);
    const auto text = yaml.get<std::string>();
    const Value document = to_value(acc::launcher::parse_document(text, "c.yaml"));
    CHECK(format_config(document.get<ConfigValues>(), "c.yaml") == text);
  }
}

TEST_CASE("write: missing folders are made and the text is read back to the same values", "[config]") {
  const acc::test::TemporaryFolder folder;
  const std::string file = GENERATE("deep/er/c.yaml", "deep/er/c.json");
  const ConfigValues values = {
      {"distributed_type", "NO"}, {"gpu_ids", "0"}, {"debug", true}, {"num_processes", 1}};
  acc::launcher::write_config(values, folder.path() / file);
  CHECK(acc::launcher::read_config(folder.path() / file).values == values);
}

}  // namespace write_test
