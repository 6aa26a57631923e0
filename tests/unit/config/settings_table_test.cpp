// SPDX-License-Identifier: Apache-2.0
#include "acc/config/settings_table.hpp"

#include "support/catch.hpp"

namespace settings_table_test {

using acc::launcher::settings_table;
using acc::launcher::Value;

namespace {

Value row(std::string_view name) {
  for (const Value& one : settings_table()) {
    if (one.at("name") == name) return one;
  }
  return {};
}

}  // namespace

TEST_CASE("settings_table: each setting has its row, in the order of the schema", "[config]") {
  const Value table = settings_table();
  const auto schema = acc::launcher::schema();
  REQUIRE(table.size() == schema.size());
  for (std::size_t i = 0; i < schema.size(); ++i) CHECK(table.at(i).at("name") == schema[i].name);
}

TEST_CASE("settings_table: a row has flags, key, variables, words and the default", "[config]") {
  CHECK(row("machine_rank").at("flags") == Value::array({"--machine_rank", "--node-rank"}));
  CHECK(row("machine_rank").at("commands") == Value::array({"launch", "run"}));
  CHECK(row("strict").at("commands") == Value::array({"launch"}));
  CHECK(row("machine_rank").at("key") == "machine_rank");
  CHECK(row("machine_rank").at("variables") == Value::array({"PET_NODE_RANK"}));
  CHECK(row("fsdp_version").at("key") == "fsdp_config.fsdp_version");
  CHECK(row("nnodes").at("key") == "");
  CHECK(row("mixed_precision").at("words") == Value::array({"no", "fp16", "bf16", "fp8"}));
  CHECK(row("max_restarts").at("default") == 0);
  CHECK(row("ec2_instance_type").at("key") == "ec2_instance_type");
}

}  // namespace settings_table_test
