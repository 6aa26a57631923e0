// SPDX-License-Identifier: Apache-2.0
#include "acc/config/read.hpp"
#include "acc/config/schema.hpp"
#include "support/catch.hpp"
#include "support/errors.hpp"

namespace schema_platforms_test {

using acc::launcher::parse_config;
using acc::launcher::Value;
using acc::test::error_of;

TEST_CASE("schema_mpi: a key that has no effect any more is noted", "[config]") {
  const acc::launcher::FileConfig config = parse_config(
      "distributed_type: MULTI_CPU\nmpirun_config:\n  mpirun_ccl: '4'\n  hostfile: /h\n", "c.yaml");
  CHECK(config.values.at("mpirun_config") == Value{{"mpirun_hostfile", "/h"}});
  REQUIRE(config.notes.size() == 1);
  CHECK(acc::to_string(config.notes[0]) ==
        "c.yaml:3:3: mpirun_ccl has no effect any more: oneCCL finds its workers itself");
}

TEST_CASE("schema_tpu: names and variables are lists of texts", "[config]") {
  const acc::launcher::FileConfig config =
      parse_config("distributed_type: XLA\ntpu_vm: [a, 1]\ntpu_env: [X=1]\n", "c.yaml");
  CHECK(config.values.at("tpu_vm") == Value::array({"a", "1"}));
  CHECK(config.values.at("tpu_env") == Value::array({"X=1"}));
}

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

}  // namespace schema_platforms_test
