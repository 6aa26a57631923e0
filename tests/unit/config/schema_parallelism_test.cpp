// SPDX-License-Identifier: Apache-2.0
#include "acc/config/read.hpp"
#include "acc/config/schema.hpp"
#include "support/catch.hpp"
#include "support/errors.hpp"

using acc::launcher::parse_config;
using acc::launcher::Value;
using acc::test::error_of;

namespace {

Value read_section(const std::string& section, const std::string& lines) {
  const std::string text = "distributed_type: MULTI_GPU\n" + section + ":\n" + lines;
  return parse_config(text, "c.yaml").values.at(section);
}

}  // namespace

TEST_CASE("schema_parallelism: keys without the prefix count, which accelerate drops", "[config]") {
  CHECK(
      read_section("parallelism_config", "  tp_size: 2\n  parallelism_config_cp_comm_strategy: alltoall\n") ==
      Value{{"parallelism_config_tp_size", 2}, {"parallelism_config_cp_comm_strategy", "alltoall"}});
}
