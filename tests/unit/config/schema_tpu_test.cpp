// SPDX-License-Identifier: Apache-2.0
#include "acc/config/read.hpp"
#include "acc/config/schema.hpp"
#include "support/catch.hpp"
#include "support/errors.hpp"

using acc::launcher::parse_config;
using acc::launcher::Value;
using acc::test::error_of;

TEST_CASE("schema_tpu: names and variables are lists of texts", "[config]") {
  const acc::launcher::FileConfig config =
      parse_config("distributed_type: XLA\ntpu_vm: [a, 1]\ntpu_env: [X=1]\n", "c.yaml");
  CHECK(config.values.at("tpu_vm") == Value::array({"a", "1"}));
  CHECK(config.values.at("tpu_env") == Value::array({"X=1"}));
}
