// SPDX-License-Identifier: Apache-2.0
#include "acc/plan/file_settings.hpp"

#include "support/catch.hpp"

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
