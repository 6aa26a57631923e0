// SPDX-License-Identifier: Apache-2.0
#include "acc/config/read.hpp"
#include "acc/config/schema.hpp"
#include "support/catch.hpp"
#include "support/errors.hpp"

using acc::launcher::parse_config;
using acc::launcher::Value;
using acc::test::error_of;

TEST_CASE("schema_sagemaker: SageMaker files have keys of their own, and are checked", "[config]") {
  const std::string text = "compute_environment: AMAZON_SAGEMAKER\ndistributed_type: no\nregion: eu-west-1\n";
  CHECK(error_of([&] { parse_config(text + "num_processes: 2\n", "c.yaml"); }) ==
        "c.yaml:4:1: unknown key 'num_processes'\n"
        "c.yaml: ec2_instance_type is missing\n"
        "c.yaml: iam_role_name is missing");
  const acc::launcher::FileConfig config =
      parse_config(text + "ec2_instance_type: x\niam_role_name: y\nadditional_args: {a: 1}\n", "c.yaml");
  CHECK(config.values.at("distributed_type") == "NO");
  CHECK(config.values.at("additional_args") == Value{{"a", 1}});
}
