// SPDX-License-Identifier: Apache-2.0
#include <filesystem>
#include <fstream>

#include "acc/config/read.hpp"
#include "acc/config/schema.hpp"
#include "support/catch.hpp"

namespace file_schema_test {

using acc::launcher::Value;

TEST_CASE("file_schema: configs/schema.json is what the table gives (acc config schema writes it)",
          "[config]") {
  std::ifstream file(std::filesystem::path(ACC_SAMPLE_CONFIGS) / "schema.json");
  REQUIRE(file);
  CHECK(Value::parse(file) == acc::launcher::file_schema());
}

TEST_CASE("file_schema: holds every key of the file with its range, its words and its default", "[config]") {
  const Value properties = acc::launcher::file_schema().at("else").at("properties");
  CHECK(properties.size() == acc::launcher::file_keys().size());
  CHECK(properties.at("main_process_port").at("maximum") == 65535);
  CHECK(properties.at("compute_environment").at("enum") ==
        Value::array({"LOCAL_MACHINE", "AMAZON_SAGEMAKER"}));
  CHECK(properties.at("num_machines").at("default") == 1);
  CHECK(properties.at("fsdp_config").at("properties").at("fsdp_version").at("maximum") == 2);
  CHECK(acc::launcher::file_schema().at("then").at("properties").contains("ec2_instance_type"));
}

TEST_CASE("file_schema: the sample configs use its keys only", "[config]") {
  const Value properties = acc::launcher::file_schema().at("else").at("properties");
  for (const auto& entry : std::filesystem::directory_iterator(ACC_SAMPLE_CONFIGS)) {
    if (entry.path().extension() != ".yaml") continue;
    for (const auto& [key, value] : acc::launcher::read_config(entry.path()).values)
      CHECK(properties.contains(key));
  }
}

}  // namespace file_schema_test
