// SPDX-License-Identifier: Apache-2.0
#include "acc/plan/file_settings.hpp"

#include "support/catch.hpp"

TEST_CASE("file_settings: keys of sections stand beside the others, each with its line", "[plan]") {
  const acc::FileConfig file = acc::parse_config(
      "distributed_type: FSDP\nfp8_config:\n  backend: TE\nfsdp_config: {version: 2}\n", "job.yaml");
  const auto settings = acc::file_settings(file);
  CHECK(settings.at("distributed_type") == acc::Setting{"FSDP", "job.yaml:1"});
  CHECK(settings.at("fp8_backend") == acc::Setting{"TE", "job.yaml:3"});
  CHECK(settings.at("fsdp_version") == acc::Setting{2, "job.yaml:4"});
  CHECK(acc::file_order(file) == std::vector<std::string>{"distributed_type", "fp8_config", "fp8_backend",
                                                          "fsdp_config", "fsdp_version"});
}
